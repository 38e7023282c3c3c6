// SPDX-License-Identifier: LGPL-2.1-or-later
// Colours of boxes, for a light and a dark page. They are chosen in OKLCH, where equal numbers look
// equally bright, so that no box shouts louder than another one of its kind.

function oklch(l, c, h) {
    const a = c * Math.cos(h * Math.PI / 180), b = c * Math.sin(h * Math.PI / 180);
    const cube = (v) => v * v * v;
    const long = cube(l + 0.3963377774 * a + 0.2158037573 * b);
    const medium = cube(l - 0.1055613458 * a - 0.0638541728 * b);
    const short = cube(l - 0.0894841775 * a - 1.2914855480 * b);
    const channel = (v) => {
        const clipped = Math.min(1, Math.max(0, v));
        const gamma = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * Math.pow(clipped, 1 / 2.4) - 0.055;

        return Math.round(255 * gamma);
    };

    return [
        channel(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        channel(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        channel(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    ];
}

const css = (rgb) => `rgb(${rgb[0]},${rgb[1]},${rgb[2]})`;
const mix = (a, b, share) => a.map((v, i) => Math.round(v + (b[i] - v) * share));

// Hue, chroma, and how much lighter than the others.
const KIND_COLORS = {
    user: [62, 0.118, 0], inlined: [98, 0.105, 0.04], jit: [150, 0.1, 0.01],
    kernel: [248, 0.085, -0.01], module: [222, 0.08, 0], bpf: [300, 0.085, 0], vdso: [195, 0.08, 0.01],
    guest: [335, 0.09, 0], hypervisor: [350, 0.09, -0.02], unknown: [80, 0.006, 0.01],
    other: [80, 0.012, -0.05],
};
const LABEL_COLOR = [255, 0.012, 0.07];
const ALL_COLOR = [80, 0.006, 0.08];

function textHash(text) {
    let hash = 2166136261;

    for (let i = 0; i < text.length; i++)
        hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    hash ^= hash >>> 15;
    hash = Math.imul(hash, 0x2c1b3c6d);
    return (hash ^ hash >>> 12) >>> 0;
}

class Palette {
    constructor(model) {
        this.model = model;
        this.setTheme(false);
    }

    setTheme(dark) {
        this.dark = dark;
        this.lightness = dark ? 0.49 : 0.815;
        this.ground = dark ? [24, 25, 29] : [255, 255, 255];
        this.ink = dark ? "#f5f2ec" : "#201c17";
        this.inkFaded = dark ? "#8d8b88" : "#8a857e";
        this.cache = new Map();
    }

    tone([hue, chroma, lighter], hash) {
        const turn = hash === undefined ? 0 : (hash & 255) / 255 - 0.5;
        const shade = hash === undefined ? 0 : (hash >>> 8 & 255) / 255 - 0.5;

        return oklch(this.lightness + (this.dark ? -lighter : lighter) * 0.8 + shade * 0.055,
                     chroma * (this.dark ? 0.93 : 1), hue + turn * 22);
    }

    ofKind(kind) {
        return this.tone(kind === "all" ? ALL_COLOR : KIND_COLORS[kind] || LABEL_COLOR);
    }

    ofDso(dso) {
        return this.tone([textHash(dso) % 360, dso ? 0.095 : 0.006, 0]);
    }

    // The colour of a frame: "kind" or "dso".
    ofFrame(frame, by) {
        const key = by + frame;
        let found = this.cache.get(key);

        if (found)
            return found;
        const kind = kindOf(this.model, frame);

        if (frame < 0 || LABEL_KINDS.has(kind))
            found = this.ofKind(kind);
        else if (by === "dso") {
            const dso = dsoOf(this.model, frame);

            found = this.tone([textHash(dso) % 360, dso ? 0.095 : 0.006, 0],
                              textHash(nameOf(this.model, frame)) & 0xff7f);
        } else
            found = this.tone(KIND_COLORS[kind], textHash(nameOf(this.model, frame)));
        this.cache.set(key, found);
        return found;
    }

    // Red: more than before, blue: less; -1 to 1.
    ofChange(change) {
        const strength = Math.min(1, Math.abs(change)), neutral = oklch(this.dark ? 0.36 : 0.93, 0.004, 80);
        const full = change > 0 ? oklch(this.dark ? 0.56 : 0.66, 0.19, 27) : oklch(this.dark ? 0.55 : 0.66, 0.15, 252);

        return mix(neutral, full, Math.pow(strength, 0.8));
    }

    get match() {
        return this.dark ? oklch(0.62, 0.19, 305) : oklch(0.72, 0.17, 312);
    }

    // How hot: 0 to 1, of a heat map.
    ofHeat(share) {
        const stops = this.dark
            ? [[0.235, 0.012, 60], [0.38, 0.09, 45], [0.6, 0.175, 45], [0.8, 0.15, 75], [0.96, 0.08, 100]]
            : [[0.97, 0.012, 85], [0.89, 0.09, 80], [0.74, 0.165, 55], [0.55, 0.19, 33], [0.3, 0.11, 25]];
        const at = Math.min(0.9999, Math.max(0, share)) * (stops.length - 1), i = Math.floor(at);

        return oklch(...stops[i].map((v, k) => v + (stops[i + 1][k] - v) * (at - i)));
    }
}
