/* Saves a model to a file of any format, and prints it: tests/memory/run. Ends with 0 if both went
 * well, or with 1 and a message. */
#include <stdio.h>

#include <weber.h>

int main(int count, char **arguments) {
    static char text[4000];
    if (count != 2 || wb_scope_open() != WB_OK) return wb_report("save");
    wb_array *w = wb_keep(wb_ones(WB_F32, 3, 3)); /* one array in two places */
    wb_layer *m = wb_chain(wb_dense(.given_weight = w), wb_dense(.given_weight = w),
                           wb_parallel(wb_connect_add, wb_dense(3, 2, wb_relu), wb_dense(3, 2)),
                           wb_dropout(.p = .5));
    wb_free(w);
    const wb_status saved = m ? wb_save(arguments[1], m) : wb_error_status();
    const wb_status shown = saved == WB_OK ? wb_show_text(m, text, sizeof text) : saved;
    if (shown == WB_OK) printf("%s", text);
    wb_free(m);
    (void)wb_scope_close();
    if (wb_report("save")) return 1;
    return shown == WB_OK ? 0 : 2; /* a status without an error */
}
