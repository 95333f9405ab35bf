// Drag a point of the curve: the numbers of its row in the form change, nothing else.
const svg = document.querySelector("[data-curve] svg");
const number = (field) => parseFloat(field.value.replace(",", ".").replace("\u2212", "-"));
const rows = [...document.querySelectorAll("[data-point]")]
  .map((row) => [...row.querySelectorAll("input")])
  .filter((fields) => fields.every((field) => !isNaN(number(field))));
const rings = svg ? [...svg.querySelectorAll("circle")] : [];

// The value at a place, by the least and the greatest point.
function scale(field, axis) {
  const found = rows.map((fields, n) => [number(fields[field]), +rings[n].getAttribute(axis)]);
  found.sort((one, other) => one[0] - other[0]);
  const [low, high] = [found[0], found[found.length - 1]];
  return (place) => low[0] + ((place - low[1]) * (high[0] - low[0])) / (high[1] - low[1]);
}

if (rings.length > 1 && rings.length === rows.length) {
  const scales = [scale(0, "cx"), scale(1, "cy")];
  rings.forEach((ring, n) => {
    const grip = ring.cloneNode();
    grip.setAttribute("r", 22);
    grip.setAttribute("class", "grip");
    grip.onpointerdown = (event) => grip.setPointerCapture(event.pointerId);
    grip.onpointermove = (event) => {
      if (!grip.hasPointerCapture(event.pointerId)) return;
      const at = new DOMPoint(event.x, event.y).matrixTransform(svg.getScreenCTM().inverse());
      [at.x, at.y].forEach((place, field) => {
        for (const each of [ring, grip]) each.setAttribute(field ? "cy" : "cx", place);
        rows[n][field].value = scales[field](place).toFixed(field && rows[n][1].dataset.decimals || 1);
      });
    };
    svg.append(grip);
  });
}
