/* scan.h - bringing Scan of opset 8 to the later form. */
#ifndef SNI_OPS_CONTROL_SCAN_H
#define SNI_OPS_CONTROL_SCAN_H

#include "ops/core/op.h"

sn_status sni_scan_upgrade(sni_upgrade *u);

#endif
