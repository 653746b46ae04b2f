/** What an instruction to an agent sounds like. Names are stable: they stand in answers of the API. */
export const WORDING_RULES = [
  'overrides_instructions',
  'addresses_agent',
  'claims_role',
  'reveals_prompt',
  'hides_from_people',
  'moves_data',
  'calls_tool',
] as const;
export type WordingRule = (typeof WORDING_RULES)[number];

/** Words of one sentence. Bounded, so that a search takes time in proportion to the text. */
const GAP = '[^.!?\\n]{0,60}';
const AGENT =
  '(?:ai|a\\.i\\.|llms?|language models?|ai (?:assistants?|agents?|models?)|(?:email|virtual|digital) assistants?|chatbots?|chatgpt|copilot|autonomous agents?)';
const MAIL =
  '(?:e-?mails?|messages|inbox|mailbox|conversations|contacts|passwords?|credentials?|api keys?|secrets?|access tokens?|(?:verification|one-time|security) codes?)';

const PATTERNS: readonly (readonly [WordingRule, RegExp])[] = [
  [
    'overrides_instructions',
    new RegExp(
      `\\b(?:ignore|disregard|forget|override|bypass|(?:do not|don['’]t|stop) follow(?:ing)?)\\b${GAP}\\b(?:previous|prior|above|earlier|preceding|all|any|your|system|existing|initial|original|other)\\b${GAP}\\b(?:instructions?|prompts?|rules|guidelines|directions|directives|constraints|guardrails|programming)\\b`,
      'iu',
    ),
  ],
  [
    'overrides_instructions',
    new RegExp(
      `\\b(?:new|updated|real|actual) (?:instructions?|directives?|objective|system prompt) (?:for (?:you|the ${AGENT})|follow)\\b`,
      'iu',
    ),
  ],
  [
    'overrides_instructions',
    /\b(?:ignore|disregard)\b (?:(?:all|any|the|these|those|every) ){0,2}(?:instructions?|directions|prompts?|(?:above|previous|prior) (?:directions|instructions?|text)|rest of (?:this|the) (?:data|text|document|e-?mail|message|page)|info(?:rmation)? except)\b/iu,
  ],
  ...[
    `(?:ignorier(?:e|en sie|t)|vergiss|vergessen sie|missachte)(?![\\p{L}])${GAP}(?:anweisungen|instruktionen|vorgaben|befehle)`,
    `(?:ignore[rz]?|oublie[rz]?|ne tiens pas compte)(?![\\p{L}])${GAP}(?:instructions|consignes)${GAP}(?:précédente|antérieure|ci-dessus|initiale)`,
    `(?:ignor[ae]|olvid[ae])(?![\\p{L}])${GAP}(?:instrucciones|indicaciones)`,
    `(?:ignor[ai]|dimentica)(?![\\p{L}])${GAP}istruzioni`,
    `(?:ignor[ea]|esqueç[ae])(?![\\p{L}])${GAP}instruções`,
    `(?:negeer|vergeet)(?![\\p{L}])${GAP}(?:instructies|opdrachten)`,
    `(?:z?ignoruj|zapomnij)(?![\\p{L}])${GAP}(?:instrukcj|polece)`,
    `(?:проигнорируй|игнорируй|забудь)${GAP}(?:инструкци|указани)`,
    '(?:忽略|无视|無視|忘记|忘記)[^。！？\\n]{0,20}(?:指令|指示|提示|规则|規則|说明|說明)',
    '(?:指示|命令|プロンプト|ルール)[^。！？\\n]{0,12}(?:無視|忘れ)',
    '(?:지시|명령|프롬프트|지침)[^.!?\\n]{0,12}(?:무시|잊)',
  ].map((pattern) => ['overrides_instructions', new RegExp(pattern, 'iu')] as const),
  [
    'addresses_agent',
    new RegExp(
      `\\b(?:if you are|you are(?: now)?|acting as|as) (?:an?|the) ${AGENT}\\b[^.!?\\n]{0,60}\\b(?:you|must|should|please|reading|processing)\\b`,
      'iu',
    ),
  ],
  [
    'addresses_agent',
    new RegExp(
      `\\b(?:attention|note to|(?:message|instructions?|notice) (?:to|for)) (?:all |any |the )?${AGENT}\\b`,
      'iu',
    ),
  ],
  [
    'claims_role',
    /<\|(?:im_start|system|assistant|endoftext)\|>|<<sys>>|\[\/?inst\]|^[ \t>*_#-]{0,8}(?:<\/?(?:system|assistant|instructions)>|\[system\]|#{2,4} (?:system|instructions?)\b|(?:system|developer|admin(?:istrator)?) (?:prompt|message|override|instructions?) ?:|system: (?:focus|ignore|respond|reply|answer|provide|you)\b|assistant: [^\n]{0,200}\n{1,2}[ \t>]{0,4}(?:user|human): )/imu,
  ],
  [
    'reveals_prompt',
    new RegExp(
      `\\b(?:reveal|print|show|see|repeat|output|display|leak|tell me|summari[sz]e|encode|translate)\\b${GAP}\\b(?:system[ _]?prompt|(?:initial|starting|original|system|hidden) (?:prompt|instructions|configuration|message)|your (?:instructions|prompt|guidelines)|(?:instructions|text) (?:above|you were given)|above text)\\b`,
      'iu',
    ),
  ],
  [
    'reveals_prompt',
    /\b(?:what (?:are|were) your (?:initial |original |system )?instructions|what were you told before)\b|\bsystem_?prompt\b[)>]/iu,
  ],
  [
    'hides_from_people',
    /\b(?:do not|don['’]t|never|without) (?:tell|telling|inform|informing|notify|notifying|alert|alerting|mention|mentioning|ask|asking)\b[^.!?\n]{0,40}\b(?:the|your) (?:user|human|owner|operator|principal)\b/iu,
  ],
  [
    'moves_data',
    new RegExp(
      `\\b(?:forward|send|e-?mail|export|upload|post|exfiltrate|leak|transmit|bcc)\\b${GAP}\\b(?:all|every|entire|whole|latest|last|recent|user['’]s|your)\\b[^.!?\\n]{0,40}\\b${MAIL}\\b${GAP}\\b(?:to|at)\\b[^!?\\n]{0,60}(?:@|https?:)`,
      'iu',
    ),
  ],
  [
    'calls_tool',
    /\b(?:call|invoke|use|run|execute) (?:the |your )?(?:[`'"“][a-z][a-z_]{1,40}[`'"”]|[a-z]{1,30}(?:_[a-z]{1,30}){1,4}) (?:tool|function)\b/iu,
  ],
];

export interface FoundWording {
  rule: WordingRule;
  /** The words that matched, with some before and after them. */
  excerpt: string;
}

const EXCERPT_CHARACTERS = 200;
const CONTEXT_CHARACTERS = 40;

/** Finds each rule that matches, once. Time is proportional to the length of the text. */
export function findWording(text: string): FoundWording[] {
  const found = new Map<WordingRule, FoundWording>();
  for (const [rule, pattern] of PATTERNS) {
    if (found.has(rule)) continue;
    const match = pattern.exec(text);
    if (match) found.set(rule, { rule, excerpt: excerptAt(text, match.index, match[0].length) });
  }
  return [...found.values()];
}

function excerptAt(text: string, index: number, length: number): string {
  const context = text.slice(Math.max(0, index - CONTEXT_CHARACTERS), index);
  // From the start of a word.
  const from = index > CONTEXT_CHARACTERS ? index - context.length + context.search(/\s|$/) : 0;
  const to = Math.min(index + length + CONTEXT_CHARACTERS, from + EXCERPT_CHARACTERS);
  return text.slice(from, to).replace(/\s+/g, ' ').trim().toWellFormed();
}
