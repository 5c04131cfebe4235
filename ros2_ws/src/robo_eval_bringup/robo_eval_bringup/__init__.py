"""Launch files and robot files, and what the launch files share."""
