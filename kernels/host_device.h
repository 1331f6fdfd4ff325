#ifndef KERNELS_HOST_DEVICE_H_
#define KERNELS_HOST_DEVICE_H_

// Marks a function that the CPU and the GPU share.
#ifdef __CUDACC__
#define DP_HOST_DEVICE __host__ __device__
#else
#define DP_HOST_DEVICE
#endif

#endif  // KERNELS_HOST_DEVICE_H_
