// A library with nothing in it. In the C++ worker it takes the place of torch's Python half, libtorch_python.so, which
// most operator libraries name among what they need and use nothing of.
