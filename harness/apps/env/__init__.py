"""Environments, built before anybody needs them."""
