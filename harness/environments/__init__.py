"""One environment per torch release: interpreters, installation, the C++ compiler and native builds."""
