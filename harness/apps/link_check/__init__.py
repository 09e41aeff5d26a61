"""Whether a server's binaries link with another LibTorch."""
