"""How Alembic runs the steps: on the connection it is handed, in its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
