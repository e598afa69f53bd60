/* What is no NVIDIA GPU, by the words of resources, images, devices and products. */
#include "facts/facts.h"
#include "base/ascii.h"

#include <string.h>

static const char amd[] = "AMD GPUs", tpu[] = "TPUs", gaudi[] = "Gaudi", intel[] = "Intel GPUs",
                  ascend[] = "Ascend NPUs", neuron[] = "AWS Neuron", cpu[] = "the CPU",
                  threads[] = "Moore Threads GPUs", apple[] = "Apple GPUs";

const char *oos_resource_other(const char *key)
{
    static const struct {
        const char *start, *what;
    } list[] = {{"amd.com/gpu", amd},
                {"beta.amd.com/gpu", amd},
                {"google.com/tpu", tpu},
                {"cloud.google.com/gke-tpu-", tpu},
                {"habana.ai/", gaudi},
                {"gpu.intel.com/", intel},
                {"aws.amazon.com/neuron", neuron},
                {"huawei.com/", ascend},
                {"mthreads.com/", threads}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strncmp(key, list[i].start, strlen(list[i].start)) == 0) return list[i].what;
    return NULL;
}

const char *oos_device_word_other(const char *word)
{
    static const struct {
        const char *word, *what;
    } list[] = {{"rocm", amd},      {"tpu", tpu},     {"cpu", cpu},       {"xeon", cpu},
                {"openvino", cpu},  {"xpu", intel},   {"hpu", gaudi},     {"gaudi", gaudi},
                {"habana", gaudi},  {"npu", ascend},  {"ascend", ascend}, {"cann", ascend},
                {"neuron", neuron}, {"musa", threads}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t const len = strlen(list[i].word);
        for (const char *at = word; (at = strstr(at, list[i].word)); at += len)
            if ((at == word || !oos_is_alnum(at[-1])) && !oos_is_alpha(at[len])) return list[i].what;
    }
    return NULL;
}

/* "mi300x", "RX 7900 XTX", "7900xtx", "Gaudi 3", "Apple M3 Max": what stands on a box of another maker. '#' is a digit. */
const char *oos_gpu_name_other(const char *name)
{
    static const struct {
        const char *start, *what;
    } list[] = {{"mi##", amd},     {"amd", amd},           {"instinct", amd},  {"radeon", amd},
                {"rx####", amd},   {"####xt", amd},        {"####gre", amd},   {"ryzen", amd},
                {"strix", amd},    {"gfx", amd},           {"tpu", tpu},       {"gaudi", gaudi},
                {"intel", intel},  {"arc", intel},         {"flex###", intel}, {"ascend", ascend},
                {"910b", ascend},  {"910c", ascend},       {"atlas", ascend},  {"trainium", neuron},
                {"trn#", neuron},  {"inferentia", neuron}, {"inf#", neuron},   {"musa", threads},
                {"mtts", threads}, {"apple", apple},       {"m#pro", apple},   {"m#max", apple},
                {"m#ultra", apple}};
    char plain[16];
    oos_name_plain(oos_view_of(name), plain, sizeof plain);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *at = plain, *start = list[i].start;
        while (*start && (*start == '#' ? oos_is_digit(*at) : *start == *at)) start++, at++;
        if (!*start) return list[i].what;
    }
    return oos_device_word_other(plain);
}
