import { escapeHtml as html } from '../../platform/escape-html.ts';

export type Tone = 'neutral' | 'info' | 'good' | 'warn' | 'bad';

/** A chart of numbers over time. */
export interface Chart {
  /** What the chart shows, for screen readers and above its table. */
  label: string;
  points: readonly { at: Date; values: Readonly<Record<string, number>> }[];
  series: readonly (readonly [name: string, text: string, tone: Tone])[];
  /** `hour`: times are shown, otherwise dates. */
  unit?: 'hour' | 'day';
}

const WIDTH = 720;
const HEIGHT = 160;
const GAP = 0.2;

/** Stacked bars. */
export function barChart(chart: Chart): string {
  const { points, series } = chart;
  const max = Math.max(1, ...points.map(({ values }) => sum(series.map(([name]) => values[name] ?? 0))));
  const width = WIDTH / Math.max(1, points.length);
  const bars = points.map((point, index) => {
    let top = HEIGHT;
    const parts = series.map(([name, , tone]) => {
      const height = ((point.values[name] ?? 0) / max) * HEIGHT;
      top -= height;
      return height === 0
        ? ''
        : `<rect class="${tone}" x="${round(index * width + (width * GAP) / 2)}" y="${round(top)}" width="${round(width * (1 - GAP))}" height="${round(height)}"/>`;
    });
    return `<g><title>${html(describe(chart, point))}</title>${parts.join('')}</g>`;
  });
  return figure(chart, max, bars.join(''));
}

/** Bars beside each other, for series of which one is part of another. */
export function groupedBarChart(chart: Chart): string {
  const { points, series } = chart;
  const max = maxOf(chart);
  const width = WIDTH / Math.max(1, points.length);
  const barWidth = (width * (1 - GAP)) / series.length;
  const bars = points.map((point, index) => {
    const parts = series.map(([name, , tone], position) => {
      const height = ((point.values[name] ?? 0) / max) * HEIGHT;
      const x = index * width + (width * GAP) / 2 + position * barWidth;
      return height === 0
        ? ''
        : `<rect class="${tone}" x="${round(x)}" y="${round(HEIGHT - height)}" width="${round(barWidth)}" height="${round(height)}"/>`;
    });
    return `<g><title>${html(describe(chart, point))}</title>${parts.join('')}</g>`;
  });
  return figure(chart, max, bars.join(''));
}

const maxOf = ({ points, series }: Chart): number =>
  Math.max(1, ...points.flatMap(({ values }) => series.map(([name]) => values[name] ?? 0)));

/** One line for each series. */
export function lineChart(chart: Chart): string {
  const { points, series } = chart;
  const max = maxOf(chart);
  const step = WIDTH / Math.max(1, points.length - 1);
  const lines = series.map(([name, , tone]) => {
    const path = points.map(
      ({ values }, index) => `${round(index * step)},${round(HEIGHT - ((values[name] ?? 0) / max) * HEIGHT)}`,
    );
    return `<polyline class="${tone}" points="${path.join(' ')}"/>`;
  });
  return figure(chart, max, lines.join(''));
}

function figure(chart: Chart, max: number, shapes: string): string {
  const { label, points, series } = chart;
  const [first] = points;
  const last = points.at(-1);
  const legend = series.map(([, text, tone]) => `<li class="${tone}">${html(text)}</li>`).join('');
  const rows = points
    .map(
      (point) =>
        `<tr><th scope="row">${labelOf(chart, point.at)}</th>${series.map(([name]) => `<td>${point.values[name] ?? 0}</td>`).join('')}</tr>`,
    )
    .join('');
  const head = series.map(([, text]) => `<th scope="col">${html(text)}</th>`).join('');
  return (
    `<figure class="chart"><figcaption>${html(label)}</figcaption><ul class="legend">${legend}</ul>` +
    `<div class="plot"><span class="scale" aria-hidden="true">${max.toLocaleString('en-US')}</span>` +
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${shapes}</svg></div>` +
    `<p class="axis" aria-hidden="true"><span>${first ? labelOf(chart, first.at) : ''}</span><span>${last ? labelOf(chart, last.at) : ''} UTC</span></p>` +
    `<details><summary>As a table</summary><div class="table" tabindex="0" role="region" aria-label="${html(label)}"><table><thead><tr><th scope="col">Time (UTC)</th>${head}</tr></thead><tbody>${rows}</tbody></table></div></details></figure>`
  );
}

const labelOf = ({ unit }: Chart, at: Date): string =>
  unit === 'hour' ? at.toISOString().slice(5, 16).replace('T', ' ') : at.toISOString().slice(0, 10);

const describe = (chart: Chart, { at, values }: Chart['points'][number]): string =>
  `${labelOf(chart, at)}: ${chart.series.map(([name, text]) => `${values[name] ?? 0} ${text.toLowerCase()}`).join(', ')}`;

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
const round = (value: number): number => Math.round(value * 10) / 10;
