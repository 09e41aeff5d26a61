"""Programs with planted culprits, the operators in them, and what finds them."""
