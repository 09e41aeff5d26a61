"""What is acceptable: findings, waivers, verdicts and the decision. Pure; today's date is an argument."""
