"""The twin: hidden, perturbed physics behind the topics of a ros2_control robot."""
