"""Models under test: fixtures, given files, manifests, requests, recorded values, archives read without torch."""
