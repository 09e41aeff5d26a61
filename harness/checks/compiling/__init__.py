"""Whether sources compile against the headers of another LibTorch."""
