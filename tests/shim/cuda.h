/* The few prototypes that the tests call, in our own types. */
#pragma once
#include <stddef.h>
#include <stdint.h>

int cudaGetDeviceCount(int *count);
int cudaSetDevice(int device);
int cudaMalloc(void **at, size_t bytes);
int cudaMallocAsync(void **at, size_t bytes, void *stream);
int cudaMallocManaged(void **at, size_t bytes, unsigned flags);
int cudaHostAlloc(void **at, size_t bytes, unsigned flags);
int cudaFree(void *at);
int cudaFreeHost(void *at);
int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemset(void *at, int value, size_t bytes);
int cudaGetLastError(void);
const char *cudaGetErrorString(int code);
int cudaStreamCreateWithFlags(void **stream, unsigned flags);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaStreamIsCapturing(void *stream, int *status);
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaMemsetAsync(void *at, int value, size_t bytes, void *stream);
int cudaGraphGetNodes(void *graph, void **nodes, size_t *count);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphExecDestroy(void *exec);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaProfilerStart(void);
int cuInit(unsigned flags);
int cuMemCreate(uint64_t *handle, size_t bytes, const void *prop, unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemAddressReserve(uint64_t *at, size_t bytes, size_t alignment, uint64_t wish,
                        unsigned long long flags);
int cuMemAddressFree(uint64_t at, size_t bytes);
int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemUnmap(uint64_t at, size_t bytes);
int cuGetProcAddress_v2(const char *name, void **at, int version, uint64_t flags, int *result);
int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int cuStreamGetCaptureInfo_v2(void *, int *, uint64_t *, void **, const void **, size_t *);
int cuTexRefCreate(void **ref);
int nvmlInit_v2(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle);
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, void *list);
typedef struct nccl_id {
    char bytes[128];
} nccl_id;
int ncclCommInitRank(void **comm, int ranks, nccl_id id, int rank);
int ncclCommDestroy(void *comm);
int ncclGetUniqueId(nccl_id *id);
int ncclCommInitAll(void **comms, int count, const int *devices);
int ncclCommSplit(void *comm, int color, int key, void **part, void *config);
int ncclCommCount(const void *comm, int *ranks);
int ncclCommUserRank(const void *comm, int *rank);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream);
int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, void *comm,
               void *stream);
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream);
int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream);
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream);
int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream);
int ncclRecv(void *to, size_t count, int type, int peer, void *comm, void *stream);
int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, void *comm);
