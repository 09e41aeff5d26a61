"""Reports as GitHub-flavoured markdown."""
