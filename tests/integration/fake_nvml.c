/* A driver library that answers as NVML does, loaded by the real pynvml through the real loader.
 *
 * FAKE_NVML_GPUS      how many boards there are
 * FAKE_NVML_FAULT     init, power, lost:N (board N has fallen off the bus), hang, processes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUCCESS 0
#define NOT_SUPPORTED 3
#define INSUFFICIENT_SIZE 7
#define DRIVER_NOT_LOADED 9
#define GPU_IS_LOST 15

typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
} Process;

static long boards[64];
static int running;

static int fault_is(const char *name) {
    const char *fault = getenv("FAKE_NVML_FAULT");
    return fault != NULL && strcmp(fault, name) == 0;
}

static unsigned index_of(void *handle) { return (unsigned)((long *)handle - boards); }

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (fault_is("init")) return DRIVER_NOT_LOADED;
    running++;
    return SUCCESS;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) { return running-- > 0 ? SUCCESS : 1; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    const char *gpus = getenv("FAKE_NVML_GPUS");
    while (fault_is("hang")) sleep(60);
    *count = gpus != NULL ? (unsigned)atoi(gpus) : 1;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    char lost[16];
    snprintf(lost, sizeof lost, "lost:%u", index);
    if (fault_is(lost)) return GPU_IS_LOST;
    *handle = &boards[index];
    return SUCCESS;
}

int nvmlDeviceGetName(void *handle, char *name, unsigned length) {
    snprintf(name, length, "Fake RTX %u", index_of(handle));
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *handle, Utilization *rates) {
    rates->gpu = 40 + index_of(handle);
    rates->memory = 10;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {
    (void)handle;
    memory->total = 24ULL << 30;
    memory->used = 3ULL << 30;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *celsius) {
    (void)handle;
    *celsius = sensor == 0 ? 61 : 0;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) {
    (void)handle;
    if (fault_is("power")) return NOT_SUPPORTED;
    *milliwatts = 123500;
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(void *handle, unsigned type, unsigned *mhz) {
    (void)handle;
    if (type == 1) *mhz = 1800; /* SM */
    else if (type == 2) *mhz = 9500; /* memory */
    else return NOT_SUPPORTED;
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons) {
    (void)handle;
    *reasons = 4;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, Process *processes) {
    unsigned room = *count, needed = fault_is("processes") ? 2 : 0;
    (void)handle;
    *count = needed;
    if (needed > room) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < needed; i++) processes[i] = (Process){1000 + i, 1ULL << 30, 0, 0};
    return SUCCESS;
}

const char *nvmlErrorString(int result) {
    switch (result) {
    case NOT_SUPPORTED: return "Not Supported";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case GPU_IS_LOST: return "GPU is lost";
    default: return "some error";
    }
}
