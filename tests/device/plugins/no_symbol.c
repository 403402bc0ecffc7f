/* A shared object that is no plugin. */
int weber_no_plugin(void);
int weber_no_plugin(void) { return 1; }
