// DUPLEX_PORTABLE marks the functions that kernels are made of: functions for one element, which a
// GPU runs for all elements at once and a test can run in a loop on the host. No CUDA header is
// needed to compile them.
#pragma once

#ifdef __CUDACC__
#define DUPLEX_PORTABLE __host__ __device__
#else
#define DUPLEX_PORTABLE
#endif
