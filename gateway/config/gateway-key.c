/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-number.h"
#include "config/gateway-config-private.h"
#include "config/gateway-value.h"

/*
 * The table of keys: everything about a key is in its row. Lint compares gateway.conf and
 * gateway.conf(5) with it.
 */

#define MS   1000000ULL
#define S    (1000 * MS)
#define MIN1 (60 * S)
#define HOUR (3600 * S)
#define DAY  (24 * HOUR)
#define K    (1ULL << 10)
#define M    (1ULL << 20)
#define G    (1ULL << 30)

enum { SERIES_MAX = 10000 };

#define IN(type, field) offsetof(type, field), sizeof(((type *)NULL)->field)
#define OF_G(field)     IN(GatewayConfig, field), false, 0
#define OF_R(field)     IN(GatewayRule, field), false, 0
#define OF_S(field)     IN(SendConfig, field), false, 0
/* People write a password here, or beside what is taken. */
#define SECRET_G(field) IN(GatewayConfig, field), true, 0
#define SECRET_S(field) IN(SendConfig, field), true, 0

/* clang-format off */
static const ConfigKey keys[] = {
    { "Gateway", "Socket",          "",          "the path of the control socket of profd",                  gateway_parse_path,       0,      0,          OF_G(socket)                  },
    { "Gateway", "Session",         "default",   "the name of a session",                                    gateway_parse_name,       0,      0,          OF_G(session)                 },
    { "Gateway", "IntervalSec",     "10s",       "a time span from 1s to 10min, such as 10s",                config_parse_span,        S,      10 * MIN1,  OF_G(interval_ns)             },
    { "Gateway", "Host",            "",          "a name of this host, in UTF-8",                            gateway_parse_text,       0,      0,          OF_G(host)                    },
    { "Gateway", "Inlines",         "no",        "yes or no",                                                config_parse_bool,        0,      1,          OF_G(inlines)                 },
    { "Listen",  "Socket",          "http",      "an absolute path, the name of a file in the runtime folder, or none", gateway_parse_socket, 0, 0,       OF_G(listen_socket)           },
    { "Listen",  "Address",         "none",      "a number and a port such as 127.0.0.1:9137 or [::1]:9137, or none", gateway_parse_address, 0, 0,        OF_G(listen_address)          },
    { "Listen",  "CertificateFile", "",          "an absolute path",                                         gateway_parse_path,       0,      0,          OF_G(listen_certificate_file) },
    { "Listen",  "KeyFile",         "",          "an absolute path",                                         gateway_parse_path,       0,      0,          SECRET_G(listen_key_file)     },
    { "Listen",  "TokenFile",       "",          "an absolute path",                                         gateway_parse_path,       0,      0,          SECRET_G(listen_token_file)   },
    { "Relabel", "Action",          "replace",   "replace, keep, drop or labeldrop",                         gateway_parse_action,     0,      0,          OF_R(action)                  },
    { "Relabel", "SourceLabels",    "",          "up to 8 names of labels",                                  gateway_parse_text,       0,      0,          OF_R(source_labels)           },
    { "Relabel", "Separator",       ";",         "text in UTF-8",                                            gateway_parse_text,       0,      0,          OF_R(separator)               },
    { "Relabel", "Regex",           "(.*)",      "a POSIX extended regular expression",                      gateway_parse_text,       0,      0,          OF_R(regex)                   },
    { "Relabel", "TargetLabel",     "",          "the name of a label",                                      gateway_parse_word,       0,      0,          OF_R(target_label)            },
    { "Relabel", "Replacement",     "$1",        "text in UTF-8, with $1 to $9 for groups of the expression", gateway_parse_text,      0,      0,          OF_R(replacement)             },
    { "Relabel", "Sends",           "",          "names of destinations, by spaces",                         gateway_parse_text,       0,      0,          OF_R(sends)                   },
    { "Send",    "Type",            "",          "pyroscope, parca, otlp, s3 or file",                       gateway_parse_type,       0,      0,          OF_S(type)                    },
    { "Send",    "URL",             "",          "http:// or https:// with a host, or the absolute path of a folder", gateway_parse_url, 0,    0,          SECRET_S(url)                 },
    { "Send",    "TimeoutSec",      "30s",       "a time span from 1s to 10min",                             config_parse_span,        S,      10 * MIN1,  OF_S(timeout_ns)              },
    { "Send",    "Compress",        "yes",       "yes or no",                                                config_parse_bool,        0,      1,          OF_S(compress)                },
    { "Send",    "Share",           "100%",      "a percentage from 1% to 100%",                             gateway_parse_percent,    1,      100,        OF_S(share_percent)           },
    { "Send",    "MaxAgeSec",       "infinity",  "a time span from 10s to 30d, or infinity",                 config_parse_span_limit,  10 * S, 30 * DAY,   OF_S(max_age_ns)              },
    { "Send",    "MaxBodySize",     "infinity",  "a size from 64K to 1G, or infinity",                       config_parse_size_limit,  64 * K, G,          OF_S(max_body_bytes)          },
    { "Send",    "MaxSeries",       "500",       "a number from 1 to 10000",                                 config_parse_count,       1,      SERIES_MAX, OF_S(max_series)              },
    { "Send",    "MaxLabelValues",  "300",       "a number from 1 to 10000",                                 config_parse_count,       1,      SERIES_MAX, OF_S(max_label_values)        },
    { "Send",    "MaxBytesPerSec",  "infinity",  "a size of at least 1K, or infinity",                       config_parse_size_limit,  K,      G,          OF_S(max_bytes_per_sec)       },
    { "Send",    "CAFile",          "",          "an absolute path",                                         gateway_parse_path,       0,      0,          OF_S(ca_file)                 },
    { "Send",    "CertificateFile", "",          "an absolute path",                                         gateway_parse_path,       0,      0,          OF_S(certificate_file)        },
    { "Send",    "KeyFile",         "",          "an absolute path",                                         gateway_parse_path,       0,      0,          SECRET_S(key_file)            },
    { "Send",    "TokenFile",       "",          "an absolute path",                                         gateway_parse_path,       0,      0,          SECRET_S(token_file)          },
    { "Send",    "PasswordFile",    "",          "an absolute path",                                         gateway_parse_path,       0,      0,          SECRET_S(password_file)       },
    { "Send",    "Credential",      "",          "the name of a credential of the unit",                     gateway_parse_name,       0,      0,          SECRET_S(credential)          },
    { "Send",    "Proxy",           "",          "http:// or https:// with a host",                          gateway_parse_url,        0,      0,          SECRET_S(proxy)               },
    { "Send",    "Tenant",          "",          "the name of a tenant, in UTF-8",                           gateway_parse_text,       0,      0,          OF_S(tenant)                  },
    { "Send",    "Region",          "us-east-1", "the name of a region",                                     gateway_parse_word,       0,      0,          OF_S(region)                  },
    { "Send",    "Content",         "",          "profiles, recordings or snapshots",                        gateway_parse_content,    0,      0,          OF_S(content)                 },
    { "Send",    "KeyTemplate",     "%H/%Y/%m/%d/%N-%T.perf.data", "a path with %H, %N, %T, %Y, %m, %d, %h, %M and %S", gateway_parse_word,       0,      0,          OF_S(key_template)            },
    { "Send",    "ObjectIntervalSec", "10min",   "a time span from 1s to 1d",                                config_parse_span,        S,      DAY,        OF_S(object_interval_ns)      },
};
/* clang-format on */

static_assert(ARRAY_SIZE(keys) <= GATEWAY_KEYS_MAX, "lines are remembered for each key");

ConfigTable gateway_config_table(void) {
    return (ConfigTable){.keys = keys, .n = ARRAY_SIZE(keys)};
}
