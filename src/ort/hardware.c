/* hardware.c - the devices of this machine: the CPU, and GPUs and NPUs as the kernel lists them. */
#include "ort/ep.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static OrtHardwareDevice *found[MOST];
static size_t found_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* First line of a small file; false: it is not there. */
static bool read_line(const char *folder, const char *name, char *out, size_t room) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    bool good = fgets(out, (int)room, f) != NULL;
    fclose(f);
    if (good) out[strcspn(out, "\n")] = 0;
    return good;
}

static uint32_t read_hex(const char *folder, const char *name) {
    char text[64];
    return read_line(folder, name, text, sizeof text) ? (uint32_t)strtoul(text, NULL, 16) : 0;
}

static OrtHardwareDevice *add(OrtHardwareDeviceType type, uint32_t vendor_id, uint32_t device_id,
                              const char *vendor) {
    OrtHardwareDevice *d = found_count < MOST ? calloc(1, sizeof *d) : NULL;
    if (!d || !ort_replace_text(&d->vendor, vendor)) {
        free(d);
        return NULL;
    }
    d->type = type;
    d->vendor_id = vendor_id;
    d->device_id = device_id;
    found[found_count++] = d;
    return d;
}

static const char *vendor_name(uint32_t id) {
    static const struct {
        uint32_t id;
        const char *name;
    } names[] = {{0x8086, "Intel"},  {0x10de, "NVIDIA"},   {0x1002, "AMD"},
                 {0x1022, "AMD"},    {0x17cb, "Qualcomm"}, {0x106b, "Apple"},
                 {0x1af4, "virtio"}, {0x1e36, "Enflame"},  {0x1ed5, "Moore Threads"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].id == id) return names[i].name;
    return "";
}

/* The CPU's vendor as it calls itself, and the number that PCI has for it. */
static void add_cpu(void) {
    char line[256], name[64] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !*name && fgets(line, sizeof line, f))
        if (sscanf(line, "vendor_id : %63s", name) != 1) *name = 0;
    if (f) fclose(f);
    uint32_t id = strcmp(name, "GenuineIntel") == 0   ? 0x8086
                  : strcmp(name, "AuthenticAMD") == 0 ? 0x1022
                                                      : 0;
    add(OrtHardwareDeviceType_CPU, id, 0, name);
}

/* Display controllers (class 03) are GPUs, processing accelerators (class 12) NPUs. */
static void add_pci(const char *folder, const char *address) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, address);
    uint32_t class_code = read_hex(path, "class") >> 16;
    if (class_code != 0x03 && class_code != 0x12) return;
    uint32_t vendor = read_hex(path, "vendor");
    OrtHardwareDevice *d =
        add(class_code == 0x03 ? OrtHardwareDeviceType_GPU : OrtHardwareDeviceType_NPU, vendor,
            read_hex(path, "device"), vendor_name(vendor));
    if (d) ort_pairs_set(&d->metadata, "pci_bus_id", address);
}

/* Accelerators that the kernel's accel class knows and PCI does not call so. */
static void add_accel(const char *folder, const char *name) {
    char path[400], real[4096];
    snprintf(path, sizeof path, "%s/%s/device", folder, name);
    if (!realpath(path, real)) return;
    const char *end = strrchr(real, '/');
    for (size_t i = 0; end && i < found_count; i++) {
        const char *address = ort_pairs_get(&found[i]->metadata, "pci_bus_id");
        if (address && strcmp(address, end + 1) == 0) return; /* listed already */
    }
    uint32_t vendor = read_hex(path, "vendor");
    OrtHardwareDevice *d =
        add(OrtHardwareDeviceType_NPU, vendor, read_hex(path, "device"), vendor_name(vendor));
    if (d) ort_pairs_set(&d->metadata, "accel", name);
}

static void each_entry(const char *folder, void (*fn)(const char *, const char *)) {
    struct dirent **list;
    int count = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (list[i]->d_name[0] != '.') fn(folder, list[i]->d_name);
        free(list[i]);
    }
    if (count >= 0) free(list);
}

static void look(void) {
    add_cpu();
    each_entry("/sys/bus/pci/devices", add_pci);
    each_entry("/sys/class/accel", add_accel);
}

const OrtHardwareDevice *const *ort_hardware(size_t *count) {
    pthread_once(&once, look);
    *count = found_count;
    return (const OrtHardwareDevice *const *)found;
}

/* ---- Slots ---- */

OrtStatusPtr ort_GetNumHardwareDevices(const OrtEnv *env, size_t *num_devices) {
    NEED(env);
    NEED(num_devices);
    ort_hardware(num_devices);
    return NULL;
}

OrtStatusPtr ort_GetHardwareDevices(const OrtEnv *env, const OrtHardwareDevice **devices,
                                    size_t num_devices) {
    NEED(env);
    size_t count;
    const OrtHardwareDevice *const *all = ort_hardware(&count);
    if (num_devices > count) num_devices = count;
    if (num_devices) NEED(devices);
    for (size_t i = 0; i < num_devices; i++) devices[i] = all[i];
    return NULL;
}

OrtHardwareDeviceType ort_HardwareDevice_Type(const OrtHardwareDevice *device) {
    return device ? device->type : OrtHardwareDeviceType_CPU;
}

uint32_t ort_HardwareDevice_VendorId(const OrtHardwareDevice *device) {
    return device ? device->vendor_id : 0;
}

const char *ort_HardwareDevice_Vendor(const OrtHardwareDevice *device) {
    return device ? device->vendor : "";
}

uint32_t ort_HardwareDevice_DeviceId(const OrtHardwareDevice *device) {
    return device ? device->device_id : 0;
}

const OrtKeyValuePairs *ort_HardwareDevice_Metadata(const OrtHardwareDevice *device) {
    static const OrtKeyValuePairs none;
    return device ? &device->metadata : &none;
}

/* Devices that a plug-in makes up, for compiling without the hardware. */
OrtStatusPtr ort_ep_CreateHardwareDevice(OrtHardwareDeviceType type, uint32_t vendor_id,
                                         uint32_t device_id, const char *vendor,
                                         const OrtKeyValuePairs *metadata,
                                         OrtHardwareDevice **out) {
    NEED(vendor);
    NEED(out);
    OrtHardwareDevice *d = calloc(1, sizeof *d);
    if (!d || !ort_replace_text(&d->vendor, vendor) ||
        (metadata && !ort_pairs_copy(&d->metadata, metadata))) {
        ort_ep_ReleaseHardwareDevice(d);
        return ort_fail_memory();
    }
    d->type = type;
    d->vendor_id = vendor_id;
    d->device_id = device_id;
    *out = d;
    return NULL;
}

void ort_ep_ReleaseHardwareDevice(OrtHardwareDevice *device) {
    if (!device) return;
    free(device->vendor);
    ort_pairs_clear(&device->metadata);
    free(device);
}
