/* cgroup.h - limits that the system puts on the process's group and those that contain it. */
#ifndef SNI_BASE_CGROUP_H
#define SNI_BASE_CGROUP_H

#include <stdint.h>

void sni_cgroup_cpus(int *most);        /* lowers *most to whole processors, rounded up */
void sni_cgroup_memory(uint64_t *most); /* lowers *most to bytes */

#endif
