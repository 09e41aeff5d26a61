"""Waivers: known findings with an owner, a bound and an expiry date."""
