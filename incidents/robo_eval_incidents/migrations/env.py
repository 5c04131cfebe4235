"""How Alembic runs the steps: on the connection it is handed, in its transaction."""

from alembic import context

# Imported by anything else than Alembic, there is nothing to run.
if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
    context.run_migrations()
