// A library with nothing in it. Under the name libtorch_python.so it stands in the C++ worker for torch's Python half,
// which most operator libraries name among what they need and use nothing of.
