/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include <stdarg.h>
#include <stdio.h>

/*
 * Describes in one sentence where a recording first stops making sense. Damage that stops reading
 * replaces damage that does not.
 */

_printf_(4, 0) static bool note_damage(PdReader *r, bool final, uint64_t offset, const char *format,
                                       va_list ap) {
    if (r->damaged && (r->damage_is_final || !final))
        return false;
    r->damaged = true;
    r->damage_is_final = final;
    r->damage = (PdDamage){.offset = offset, .file = r->file};
    vsnprintf(r->damage.text, sizeof(r->damage.text), format, ap);
    return true;
}

void reader_damage(PdReader *r, bool final, uint64_t offset, const char *format, ...) {
    va_list ap;

    va_start(ap, format);
    (void)note_damage(r, final, offset, format, ap);
    va_end(ap);
}

void reader_cut_off(PdReader *r, bool final, uint64_t offset, const char *format, ...) {
    va_list ap;

    va_start(ap, format);
    if (note_damage(r, final, offset, format, ap))
        r->damage.cut_off = true;
    va_end(ap);
}

const PdDamage *pd_reader_damage(const PdReader *reader) {
    return reader->damaged ? &reader->damage : NULL;
}
