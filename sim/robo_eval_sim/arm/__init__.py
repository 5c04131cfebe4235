"""A Franka Panda on a table, shared by the manipulation tasks."""
