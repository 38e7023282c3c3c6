/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "perfdata/describe/record-describe.h"
#include "perfdata/feature/environment.h"
#include "perfdata/reader/reader.h"

/*
 * A whole recording from memory: header, attrs, features, records of every kind, payload. The
 * input is the file. Everything that a command would do with it is done: stamp, parse, describe,
 * decode and print the environment, rewind and read again.
 */

enum { RECORDS_MAX = 20000 };

static void read_payload(PdReader *reader) {
    uint8_t chunk[512];

    while (pd_reader_payload(reader, chunk, sizeof(chunk)) > 0)
        ;
}

static void read_records(PdReader *reader, Buffer *out) {
    PdRecord record;

    for (unsigned n = 0; n < RECORDS_MAX && pd_reader_next(reader, &record) > 0; n++) {
        Fields fields = fields_to(out, n % 2 ? FIELDS_JSON : FIELDS_TEXT);
        PdStamp stamp;
        PdBody body;

        fuzz_touch(record.data, record.size);
        if (pd_events_stamp(pd_reader_events(reader), &record, &stamp) < 0)
            stamp = (PdStamp){};
        (void)pd_record_parse(&record, stamp.event, &body);
        buffer_clear(out);
        fields_begin_object(&fields, NULL);
        pd_record_describe(&record, &stamp, NULL, &fields);
        fields_end_object(&fields);
        if (n % 3 == 0 && record.payload > 0)
            read_payload(reader);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(pd_environment_freep) PdEnvironment *environment = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(buffer_done) Buffer out = {};
    Fields fields = fields_to(&out, FIELDS_JSON);
    unsigned damaged;
    PdDamage why;

    if (pd_reader_open_memory((Bytes){.data = data, .size = size}, NULL, &reader, &why) < 0)
        return 0;
    read_records(reader, &out);
    if (pd_environment_new(&environment) == 0 &&
        pd_environment_from_reader(environment, reader, &damaged, &why) == 0) {
        pd_environment_print(environment, &out);
        pd_environment_describe(environment, &fields);
    }
    if (pd_reader_rewind(reader) == 0)
        read_records(reader, &out);
    (void)pd_reader_damage(reader);
    return 0;
}
