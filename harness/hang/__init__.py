"""Progress seen from outside, proof of a hang, evidence of what the process was doing, and what that means."""
