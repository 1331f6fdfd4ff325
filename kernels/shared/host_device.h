#ifndef KERNELS_SHARED_HOST_DEVICE_H_
#define KERNELS_SHARED_HOST_DEVICE_H_

// Marks a function that the CPU and the GPU share.
#ifdef __CUDACC__
#define MJP_HOST_DEVICE __host__ __device__
#else
#define MJP_HOST_DEVICE
#endif

#endif  // KERNELS_SHARED_HOST_DEVICE_H_
