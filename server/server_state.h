/* server_state.h - whether the server takes requests. */
#ifndef SERVER_STATE_H
#define SERVER_STATE_H

#include <stdbool.h>

bool srv_state_ready(void); /* models are loaded and it is not stopping */
bool srv_state_stopping(void);

#endif
