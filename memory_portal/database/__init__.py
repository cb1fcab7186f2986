"""Django's PostgreSQL, but for how a kept connection is found to be alive. Named in settings as the engine."""
