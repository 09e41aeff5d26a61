"""Models under test: fixtures, given artifacts, manifests, requests, bundles, and the artifacts made of them."""
