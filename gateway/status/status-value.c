/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "status/status-value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "transport/retry.h"
#include "util/clock.h"
#include "util/file.h"

/* Derives what people ask of a destination from its figures: is it up, how far is it behind, what
 * helps. Remedies are a table by the status that the engine answered. */

bool status_send_is_up(const DestinationStatus *send) {
    return send->last_success_ns > 0 && send->last_success_ns >= send->last_error_ns;
}

uint64_t status_source_lag_ns(const GatewayStatus *status) {
    uint64_t until_ns = status->source.until_ns > 0 ? status->source.until_ns : status->start_ns;

    return status->now_ns > until_ns ? status->now_ns - until_ns : 0;
}

uint64_t status_send_lag_ns(const GatewayStatus *status, const DestinationStatus *send) {
    uint64_t done_ns = send->live_until_ns > 0 ? send->live_until_ns : status->start_ns;

    if (send->backlog_ns > 0 && send->backlog_since_ns > 0)
        done_ns = MIN(done_ns, send->backlog_since_ns);
    return status->now_ns > done_ns ? status->now_ns - done_ns : 0;
}

uint64_t status_send_live_lag_ns(const GatewayStatus *status, const DestinationStatus *send) {
    uint64_t newest_ns = send->newest_ns > 0 ? send->newest_ns : status->start_ns;

    return status->now_ns > newest_ns ? status->now_ns - newest_ns : 0;
}

typedef struct StatusRemedy {
    long first, last; /* of the status of HTTP, or SEND_STATUS_LOCAL */
    const char *remedy;
    bool is_loss; /* a later success does not mend it */
} StatusRemedy;

/* clang-format off */
/* Type=s3 has these remedies of its own. */
static const StatusRemedy status_store_rows[] = {
    {   0,   0, "Check that the store runs and that URL=, Proxy= and the network lead to it; nothing is lost as long as profd keeps it.", false },
    { 300, 399, "Set URL= to the address that the store redirects to; the gateway follows no redirect.", false },
    { 401, 401, "Check the access key in PasswordFile= or Credential= of this destination.", false },
    { 403, 403, "Check the access key in PasswordFile= or Credential= of this destination, and what it may do with the bucket.", false },
    { 404, 405, "Check URL= of this destination, which names the bucket.", false },
    { 407, 407, "Check Proxy= of this destination.", false },
    { 413, 414, "Raise the limit of the store or of the proxy before it, or lower ObjectIntervalSec=; what it refused is not uploaded.", true },
    { 429, 429, "Raise the rate limit of the store, or ObjectIntervalSec= of this destination; objects are uploaded later.", false },
    { 400, 499, "Mend what the error names; the log of the store may say more.", false },
    { 200, 299, "Look at the log of the store; nothing is lost as long as profd keeps it.", false },
    { 500, 599, "Look at the log of the store; nothing is lost as long as profd keeps it.", false },
};

static const StatusRemedy status_rows[] = {
    { SEND_STATUS_LOCAL, SEND_STATUS_LOCAL,
                "Mend what the error names on this host: profd-gateway must be able to write to its folder of positions and to the folder "
                "of URL=, which need space, and to read the files of TokenFile=, PasswordFile= and Credential=; nothing is lost meanwhile.", false },
    { SEND_STATUS_SOURCE, SEND_STATUS_SOURCE,
                "Look at the log of profd; 'profctl status' shows whether profd runs. The user profd-gateway has to be in the group "
                "profd-read; nothing is lost as long as profd is away.", false },
    {   0,   0, "Check that the engine runs and that URL=, Proxy= and the network lead to it; nothing is lost meanwhile.", false },
    { 200, 299, "Compare the limits and the version of the engine with gateway.conf(5), and look at its log; what it refused is lost.", true },
    { 300, 399, "Set URL= to the address that the engine redirects to; the gateway follows no redirect.", false },
    { 401, 401, "Check TokenFile=, PasswordFile= or Credential= of this destination.", false },
    { 403, 403, "Check TokenFile=, PasswordFile= or Credential= and Tenant= of this destination, and what they may do there.", false },
    { 404, 405, "Check Type= and URL= of this destination; the engine there may need its profiling API switched on.", false },
    { 407, 407, "Check Proxy= of this destination.", false },
    { 408, 408, "Look at the log of the engine; nothing is lost meanwhile.", false },
    { 413, 413, "Raise the limit of the engine (max_request_body_size of the OpenTelemetry Collector, client_max_body_size of nginx); "
                "what does not fit is sent without its rarest stacks (OTHER), or is lost (REFUSED).", true },
    { 425, 425, "Look at the log of the engine; nothing is lost meanwhile.", false },
    { 429, 429, "Raise the rate limit of the engine, or lower Share= or MaxSeries= of this destination; the backlog is sent later.", false },
    { 400, 499, "Compare the limits and the version of the engine with gateway.conf(5); what it refused is lost.", true },
    { 500, 599, "Look at the log of the engine; nothing is lost meanwhile.", false },
};
/* clang-format on */

static const StatusRemedy *status_find_remedy(const StatusRemedy *rows, size_t n, long status) {
    for (size_t i = 0; i < n; i++)
        if (status >= rows[i].first && status <= rows[i].last)
            return &rows[i];
    return NULL;
}

const char *status_send_remedy(const DestinationStatus *send) {
    const StatusRemedy *row = NULL;

    if (send->last_error_ns == 0)
        return "";
    if (send->type && strcmp(send->type, "s3") == 0)
        row = status_find_remedy(status_store_rows, ARRAY_SIZE(status_store_rows),
                                 send->error_status);
    if (!row)
        row = status_find_remedy(status_rows, ARRAY_SIZE(status_rows), send->error_status);
    return row && (row->is_loss || !status_send_is_up(send)) ? row->remedy : "";
}

static void status_measure_memory(GatewayStatus *status) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), resident, of_files;
    char text[128];

    if (file_read_text("/proc/self/statm", text, sizeof(text)) < 0 ||
        sscanf(text, "%*u %" SCNu64 " %" SCNu64, &resident, &of_files) != 2)
        return;
    status->resident_bytes = resident * page;
    status->anonymous_bytes = (resident - MIN(of_files, resident)) * page;
}

void status_measure(GatewayStatus *status) {
    status->now_ns = clock_ns(CLOCK_REALTIME);
    status->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    status_measure_memory(status);
}
