import type { Command } from 'commander';
import { usageError } from '../cli-error.ts';

/** What may follow a path of commands, such as `webhooks listen`. */
interface Place {
  path: string;
  commands: { name: string; description: string }[];
  options: { name: string; description: string }[];
}

/** A script that completes commands and options in a shell. */
export function completionScript(program: Command, shell: string): string {
  const places = [...listPlaces(program, [], optionsOf(program))];
  if (shell === 'bash') return bash(places);
  if (shell === 'zsh') return zsh(places);
  if (shell === 'fish') return fish(places);
  throw usageError(`There is no completion for ${shell}.`, 'Name bash, zsh or fish.');
}

function* listPlaces(command: Command, path: string[], shared: Place['options']): Generator<Place> {
  const commands = command.commands.map((each) => ({
    name: each.name(),
    description: each.description(),
  }));
  const own = path.length === 0 ? [] : optionsOf(command);
  yield { path: path.join(' '), commands, options: [...own, ...shared] };
  for (const each of command.commands) yield* listPlaces(each, [...path, each.name()], shared);
}

const optionsOf = ({ options }: Command): Place['options'] =>
  options.map(({ long, description }) => ({ name: long ?? '', description }));

const words = ({ commands, options }: Place): string =>
  [...commands, ...options].map(({ name }) => name).join(' ');

const commandPaths = (places: readonly Place[]): string[] =>
  places.flatMap(({ path }) => (path === '' ? [] : [`'${path}'`]));

const bash = (places: readonly Place[]): string => `_agent_email() {
  local current=\${COMP_WORDS[COMP_CWORD]} at= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${at:+$at }$word" in
      ${commandPaths(places).join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${places.map((place) => `    '${place.path}') COMPREPLY=($(compgen -W '${words(place)}' -- "$current")) ;;`).join('\n')}
  esac
}
complete -o default -F _agent_email agent-email
`;

const zsh = (places: readonly Place[]): string => `#compdef agent-email
_agent_email() {
  local at= word
  for word in \${words[2,CURRENT-1]}; do
    case "\${at:+$at }$word" in
      ${commandPaths(places).join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${places.map((place) => `    '${place.path}') compadd -- ${words(place)} ;;`).join('\n')}
  esac
  _files
}
compdef _agent_email agent-email
`;

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, options }) => {
    const seen = path.split(' ').filter(Boolean);
    const others = commands.map(({ name }) => name).join(' ');
    const condition = [
      ...seen.map((name) => `__fish_seen_subcommand_from ${name}`),
      ...(others === '' ? [] : [`not __fish_seen_subcommand_from ${others}`]),
    ].join('; and ');
    const start = `complete -c agent-email${condition === '' ? '' : ` -n '${condition}'`}`;
    return [
      ...commands.map(({ name, description }) => `${start} -f -a ${name} -d ${quote(description)}`),
      ...options.map(({ name, description }) => `${start} -l ${name.slice(2)} -d ${quote(description)}`),
    ];
  });
  return `${lines.join('\n')}\n`;
}

const quote = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
