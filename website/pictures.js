// Whoever points at a mark of a picture reads its values at once, beside the pointer: its title, and of a line the values of the
// point that is next to the pointer, by the scales in data-x and data-y (pictures.py).
{ // a block, because scripts of a page share their names
  const value = (scale, pixels) => {
    const [kind, first, step, unit, title] = scale.split("|");
    const height = Number(first) + Number(step) * pixels;
    const number = kind === "log" ? Math.exp(height) : height;
    const smallest = kind === "log" ? 0 : Math.abs(Number(step)) / 100; // what is nearer to 0 than a hundredth of a pixel is 0
    return `${title}: ${Number((Math.abs(number) < smallest ? 0 : number).toPrecision(3))}${unit}`;
  };

  const words = (mark, event) => {
    if (!mark.dataset.x) return mark.dataset.words;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(mark.getScreenCTM().inverse());
    mark.points ??= [...mark.getAttribute("d").matchAll(/[ML](-?[\d.e-]+),(-?[\d.e-]+)/g)].map((point) => [Number(point[1]), Number(point[2])]);
    const far = ([x, y]) => Math.hypot(x - at.x, y - at.y);
    const [x, y] = mark.points.reduce((best, point) => (far(point) < far(best) ? point : best));
    return [mark.dataset.words, value(mark.dataset.x, x), value(mark.dataset.y, y)].filter(Boolean).join("\n");
  };

  for (const figure of document.querySelectorAll("figure.picture")) {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    figure.append(tip);
    for (const title of figure.querySelectorAll("title")) {
      title.parentNode.dataset.words = title.textContent;
      title.remove(); // else the browser shows the same once more, a second later
    }
    figure.addEventListener("pointermove", (event) => {
      const mark = event.target.closest("[data-words]");
      tip.hidden = !mark;
      if (!mark) return;
      tip.textContent = words(mark, event);
      const box = figure.getBoundingClientRect();
      tip.style.left = Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth) + "px";
      tip.style.top = event.clientY - box.top + 16 + "px";
    });
    figure.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
}
