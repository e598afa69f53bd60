/* Another copy of the CUDA runtime, as cuda-python brings one along: it answers in its own way. */
__attribute__((visibility("default"))) int cudaFree(void *at);
int cudaFree(void *at)
{
    (void)at;
    return 801;
}
