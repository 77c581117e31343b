// A cyclic colour map: the hue goes once around, and the lightness rises and falls once, for those who see few hues.

/** The colour of a phase in radians as [r, g, b] from 0 to 255. */
export function phaseColour(phase) {
  const lightness = 0.66 + 0.11 * Math.cos(phase);
  const hue = phase + 4.9;
  const chroma = 0.135;
  const a = chroma * Math.cos(hue), b = chroma * Math.sin(hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((part) => {
    const clipped = Math.min(Math.max(part, 0), 1);
    return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
  });
}

const TABLE = Array.from({ length: 256 }, (_, i) => `rgb(${phaseColour((i / 256) * 2 * Math.PI).join(",")})`);

export function colourOf(phase) {
  const turn = phase / (2 * Math.PI);
  return TABLE[Math.floor((turn - Math.floor(turn)) * 256) % 256];
}

/** The wheel of all phases, with labels. */
export function drawWheel(canvas, text) {
  const context = canvas.getContext("2d");
  const middle = canvas.width / 2, outer = middle - 30, inner = outer - 18;
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < 256; i += 1) {
    const angle = -(i / 256) * 2 * Math.PI;
    context.beginPath();
    context.arc(middle, middle, (outer + inner) / 2, angle - 0.03, angle + 0.03);
    context.lineWidth = outer - inner;
    context.strokeStyle = TABLE[i];
    context.stroke();
  }
  context.fillStyle = text;
  context.font = "20px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [label, angle] of [["0", 0], ["π/2", Math.PI / 2], ["π", Math.PI], ["−π/2", -Math.PI / 2]]) {
    context.fillText(label, middle + (outer + 16) * Math.cos(angle), middle - (outer + 15) * Math.sin(angle));
  }
}
