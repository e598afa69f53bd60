/* nvidia-smi for programs of a dry run that ask it: fields of --query-gpu, -L, and the head of the plain table. What it says comes from
 * the NVML of the process, so a program hears the same from both. What it does not know it refuses, as the real one does. */
#include "base/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_FIELD = 2, NO_OPTION = 1, NO_DEVICE = 6, NO_DRIVER = 9, FIELDS = 32, WORD = 96 };

typedef int call_0(void);
typedef int call_count(unsigned *ret_count);
typedef int call_at(unsigned index, void **ret_handle);
typedef int call_text(void *handle, char *ret_text, unsigned capacity);
typedef int call_version(char *ret_text, unsigned capacity);
typedef int call_number(int *ret_number);
typedef int call_capability(void *handle, int *ret_major, int *ret_minor);
typedef int call_memory(void *handle, oos_nvml_memory *ret_memory);
typedef int call_pci(void *handle, oos_nvml_pci_info *ret_info);
typedef int call_rates(void *handle, unsigned *ret_rates);

static void *nvml;

static void *call(const char *name)
{
    void *at = dlsym(nvml, name);
    if (at) return at;
    fprintf(stderr, "nvidia-smi: %s is not there\n", name);
    exit(NO_DRIVER);
}

/* What a field says of a device, and its unit; false: no such field. */
static bool field_of(const char *field, unsigned index, void *handle, char *ret_text, const char **ret_unit)
{
    static const char *const unanswered[] = {"temperature.", "power.",       "clocks.",   "fan.speed",
                                             "pstate",       "ecc.",         "serial",    "vbios_version",
                                             "pcie.",        "mig.",         "display_",  "persistence_mode",
                                             "accounting.",  "compute_mode", "timestamp", "driver_model.",
                                             "encoder.",     "inforom.",     "enforced.", "retired_pages."};
    oos_nvml_memory memory = {0};
    ((call_memory *)call("nvmlDeviceGetMemoryInfo"))(handle, &memory);
    *ret_unit = "";
    if (strncmp(field, "memory.", 7) == 0) {
        const char *part = field + 7;
        uint64_t const bytes = strcmp(part, "total") == 0  ? memory.total
                               : strcmp(part, "used") == 0 ? memory.used
                               : strcmp(part, "free") == 0 ? memory.free
                                                           : UINT64_MAX;
        *ret_unit = " MiB";
        snprintf(ret_text, WORD, "%llu",
                 (unsigned long long)(strcmp(part, "reserved") == 0 ? 0 : bytes >> 20));
        return bytes != UINT64_MAX || strcmp(part, "reserved") == 0;
    }
    if (strcmp(field, "index") == 0) return snprintf(ret_text, WORD, "%u", index) > 0;
    if (strcmp(field, "name") == 0 || strcmp(field, "gpu_name") == 0)
        return ((call_text *)call("nvmlDeviceGetName"))(handle, ret_text, WORD) == 0;
    if (strcmp(field, "uuid") == 0 || strcmp(field, "gpu_uuid") == 0)
        return ((call_text *)call("nvmlDeviceGetUUID"))(handle, ret_text, WORD) == 0;
    if (strcmp(field, "driver_version") == 0)
        return ((call_version *)call("nvmlSystemGetDriverVersion"))(ret_text, WORD) == 0;
    if (strcmp(field, "compute_cap") == 0) {
        int major = 0, minor = 0;
        ((call_capability *)call("nvmlDeviceGetCudaComputeCapability"))(handle, &major, &minor);
        return snprintf(ret_text, WORD, "%d.%d", major, minor) > 0;
    }
    if (strcmp(field, "count") == 0) {
        unsigned count = 0;
        ((call_count *)call("nvmlDeviceGetCount_v2"))(&count);
        return snprintf(ret_text, WORD, "%u", count) > 0;
    }
    if (strcmp(field, "pci.bus_id") == 0 || strcmp(field, "gpu_bus_id") == 0) {
        oos_nvml_pci_info info = {0};
        ((call_pci *)call("nvmlDeviceGetPciInfo_v3"))(handle, &info);
        return snprintf(ret_text, WORD, "%.32s", info.bus_id) > 0;
    }
    if (strcmp(field, "utilization.gpu") == 0 || strcmp(field, "utilization.memory") == 0) {
        unsigned rates[2] = {0};
        ((call_rates *)call("nvmlDeviceGetUtilizationRates"))(handle, rates);
        *ret_unit = " %";
        return snprintf(ret_text, WORD, "%u", rates[strcmp(field + 12, "memory") == 0]) > 0;
    }
    snprintf(ret_text, WORD, "[N/A]");
    for (size_t i = 0; i < sizeof unanswered / sizeof *unanswered; i++)
        if (strncmp(field, unanswered[i], strlen(unanswered[i])) == 0) return true;
    return false;
}

typedef struct question {
    char *fields[FIELDS];
    size_t field_count;
    bool list, header, units;
    bool apps;      /* --query-compute-apps: nobody is told */
    const char *id; /* NULL: all devices */
} question;

static unsigned device_count(void)
{
    unsigned count = 0;
    ((call_count *)call("nvmlDeviceGetCount_v2"))(&count);
    return count;
}

static bool is_asked(const question *q, unsigned index, void *handle)
{
    char uuid[WORD] = "";
    if (!q->id) return true;
    ((call_text *)call("nvmlDeviceGetUUID"))(handle, uuid, sizeof uuid);
    for (const char *at = q->id; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t const len = strcspn(at, ",");
        char *end;
        if (strtoul(at, &end, 10) == index && end == at + len) return true;
        if (strlen(uuid) == len && strncmp(at, uuid, len) == 0) return true;
    }
    return false;
}

static const char *unit_of(const char *field)
{
    return strncmp(field, "memory.", 7) == 0         ? " [MiB]"
           : strncmp(field, "utilization.", 12) == 0 ? " [%]"
                                                     : "";
}

static void put_header(const question *q)
{
    if (!q->header || !q->field_count) return;
    for (size_t i = 0; i < q->field_count; i++)
        printf("%s%s%s", i ? ", " : "", q->fields[i], unit_of(q->fields[i]));
    putchar('\n');
}

static int answer(const question *q)
{
    char text[WORD];
    const char *unit;
    unsigned asked = 0;
    for (unsigned index = 0; index < device_count(); index++) {
        void *handle = NULL;
        if (((call_at *)call("nvmlDeviceGetHandleByIndex_v2"))(index, &handle) != 0) return NO_DRIVER;
        if (!is_asked(q, index, handle)) continue;
        for (size_t i = 0; i < q->field_count; i++) {
            if (field_of(q->fields[i], index, handle, text, &unit)) continue;
            printf("Field \"%s\" is not a valid field to query.\n\n", q->fields[i]);
            return NO_FIELD;
        }
        if (asked++ == 0) put_header(q);
        for (size_t i = 0; i < q->field_count; i++) {
            field_of(q->fields[i], index, handle, text, &unit);
            printf("%s%s%s", i ? ", " : "", text, q->units && text[0] != '[' ? unit : "");
        }
        if (q->list) {
            char uuid[WORD] = "";
            ((call_text *)call("nvmlDeviceGetName"))(handle, text, sizeof text);
            ((call_text *)call("nvmlDeviceGetUUID"))(handle, uuid, sizeof uuid);
            printf("GPU %u: %s (UUID: %s)", index, text, uuid);
        }
        putchar('\n');
    }
    if (asked) return 0;
    puts("No devices were found");
    return NO_DEVICE;
}

/* The lines in which programs look for versions and names. */
static int table(void)
{
    char driver[WORD] = "";
    int cuda = 0;
    ((call_version *)call("nvmlSystemGetDriverVersion"))(driver, sizeof driver);
    ((call_number *)call("nvmlSystemGetCudaDriverVersion_v2"))(&cuda);
    printf("| NVIDIA-SMI %-10s Driver Version: %-10s CUDA Version: %d.%-3d |\n", driver, driver, cuda / 1000,
           cuda % 1000 / 10);
    for (unsigned index = 0; index < device_count(); index++) {
        char name[WORD] = "";
        void *handle = NULL;
        oos_nvml_memory memory = {0};
        ((call_at *)call("nvmlDeviceGetHandleByIndex_v2"))(index, &handle);
        ((call_text *)call("nvmlDeviceGetName"))(handle, name, sizeof name);
        ((call_memory *)call("nvmlDeviceGetMemoryInfo"))(handle, &memory);
        printf("| %3u  %-28s %7llu MiB / %7llu MiB |\n", index, name, (unsigned long long)(memory.used >> 20),
               (unsigned long long)(memory.total >> 20));
    }
    return 0;
}

static void fields_take(question *q, char *list)
{
    for (char *rest, *at = strtok_r(list, ", ", &rest); at && q->field_count < FIELDS;
         at = strtok_r(NULL, ", ", &rest))
        q->fields[q->field_count++] = at;
}

/* The value of "--name=value" or "--name value"; NULL: another option. */
static char *value_of(char **arguments, int *at, const char *name)
{
    size_t const len = strlen(name);
    if (strncmp(arguments[*at], name, len) != 0) return NULL;
    if (arguments[*at][len] == '=') return arguments[*at] + len + 1;
    return arguments[*at][len] == '\0' && arguments[*at + 1] ? arguments[++*at] : NULL;
}

int main(int argc, char **argv)
{
    question q = {.header = true, .units = true};
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!nvml || ((call_0 *)call("nvmlInit_v2"))() != 0) {
        puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.");
        return NO_DRIVER;
    }
    for (int i = 1; i < argc; i++) {
        char *value;
        if ((value = value_of(argv, &i, "--query-gpu")))
            fields_take(&q, value);
        else if ((value = value_of(argv, &i, "--format"))) {
            q.header = !strstr(value, "noheader");
            q.units = !strstr(value, "nounits");
        } else if ((value = value_of(argv, &i, "-i")) || (value = value_of(argv, &i, "--id")))
            q.id = value;
        else if (value_of(argv, &i, "--query-compute-apps"))
            q.apps = true;
        else if (strcmp(argv[i], "-L") == 0 || strcmp(argv[i], "--list-gpus") == 0)
            q.list = true;
        else {
            printf("Invalid combination of input arguments. `%s` is not known to this nvidia-smi, which "
                   "stands in "
                   "for the real one in a dry run.\n",
                   argv[i]);
            return NO_OPTION;
        }
    }
    if (q.apps) return 0;
    return q.field_count || q.list ? answer(&q) : table();
}
