"""Whether a server's sources compile against another LibTorch."""
