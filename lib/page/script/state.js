// SPDX-License-Identifier: LGPL-2.1-or-later
// What the reader chose, which is kept in the address of the page, so that it can be sent to others.

// name in the address: name here, how it is read. What is as it began is not in the address.
const STATE_FIELDS = [
    ["view", "view", (text) => ["top", "bottom", "sandwich"].includes(text) ? text : undefined],
    ["f", "frame", Number],
    ["q", "query", String],
    ["zoom", "zoom", Number],
    ["shape", "shape", (text) => ["flame", "icicle"].includes(text) ? text : undefined],
    ["color", "color", (text) => ["kind", "dso"].includes(text) ? text : undefined],
    ["order", "order", (text) => ["weight", "name"].includes(text) ? text : undefined],
    ["merge", "merge", (text) => ["name", "address"].includes(text) ? text : undefined],
    ["range", "range", readRange],
    ["base", "base", readRange],
    ["theme", "theme", (text) => ["dark", "light"].includes(text) ? text : undefined],
];

function readRange(text) {
    const [from, to] = text.split("-").map(Number);

    return Number.isInteger(from) && Number.isInteger(to) && 0 <= from && from < to ? [from, to] : undefined;
}

function readAddress(defaults) {
    const words = new URLSearchParams(location.hash.slice(1)), state = { ...defaults };

    for (const [short, name, read] of STATE_FIELDS) {
        const value = words.has(short) ? read(words.get(short)) : undefined;

        if (value !== undefined && !Number.isNaN(value))
            state[name] = value;
    }
    return state;
}

function writeAddress(state, defaults) {
    const words = new URLSearchParams();

    for (const [short, name] of STATE_FIELDS) {
        const value = state[name];

        if (value !== defaults[name] && value !== null && value !== undefined && value !== "")
            words.set(short, Array.isArray(value) ? value.join("-") : String(value));
    }
    const hash = words.toString();

    if (hash !== location.hash.slice(1))
        history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
}
