// A library that uses the runtime as soon as it is loaded, so that any program will do to load it.
#include <cstdio>

#include <cuda_runtime.h>

__attribute__((constructor)) static void count_devices() {
  int count = 0;
  std::printf("library: %s\n", cudaGetErrorName(cudaGetDeviceCount(&count)));
}
