"""Django's PostgreSQL, each of whose sessions is told whose rows it may see (store/wall.py): the engine with DATABASE_ROLE."""
