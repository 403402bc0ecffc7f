/* The command line tool: `weber devices`, `weber backend`, `weber show`. It uses public headers only. */
#ifndef WB_TOOL_TOOL_H
#define WB_TOOL_TOOL_H

/* Each gets what stands behind its name and gives the exit status: 0, 1 after an error, 2 for what it does not understand. */
int tool_devices(int count, char **arguments);
int tool_backend(int count, char **arguments);
int tool_show(int count, char **arguments);

int tool_usage(void);

/* The choice and the preference are asked once, so that their warnings come once. */
void devices_as_text(void);
void devices_as_json(void);

#endif
