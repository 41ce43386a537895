// The Makefile precompiles this for all tests.
#include <gtest/gtest.h>
