"""How Hypothesis runs here: as in every other test, how long something takes is no failure, and nothing is by chance."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")
