/** What a link is for, as far as its words and its address tell. */
export const LINK_KINDS = [
  'verify',
  'reset',
  'sign_in',
  'invite',
  'unsubscribe',
  'calendar',
  'other',
] as const;
export type LinkKind = (typeof LINK_KINDS)[number];

type Rules = readonly [kind: LinkKind, expression: RegExp][];

const words = (...alternatives: string[]) => new RegExp(alternatives.join('|'), 'iu');

const UNSUBSCRIBE = words(
  'unsubscribe|opt[- ]?out|(?:manage|update|change|edit) (?:your )?(?:e?-?mail |communication |notification |subscription )?(?:preferences|subscriptions?)',
  'e?-?mail preferences|stop receiving|abmelden|abbestell|désabonn|désinscri|darse de baja|cancelar (?:la )?suscripci|descadastr|cancelar inscri',
  "disiscri|annulla (?:l[’']?)?iscrizione|uitschrijven|afmelden|wypis|avregistrera|avsluta prenumeration|meld av|afmeld|peruuta tilaus|odhlásit|leiratkoz|dezabon",
  'отписаться|отказаться от рассылки|відписатися|abonelikten çık|hủy đăng ký|berhenti berlangganan|退订|退訂|取消订阅|取消訂閱|配信(?:停止|解除)|登録解除|수신 ?거부|구독 ?취소|ยกเลิกการ|إلغاء الاشتراك|لغو اشتراک|הסר',
);
const CALENDAR = words(
  "add (?:it |this |event )?to (?:your |my )?(?:google |outlook |apple |yahoo )?calendar|save the date|\\brsvp\\b|zum kalender hinzufügen|ajouter (?:à (?:l[’']|mon |votre )?agenda|au calendrier)|añadir al calendario|aggiungi al calendario|添加到日历|カレンダーに追加",
);
const RESET = words(
  '(?:reset|re-set|recover|restore|change|set|create|choose|forgot|forgotten|update)(?: \\p{L}{1,12}){0,3} pass(?:word|code|phrase)|password reset|account recovery|recover (?:your |my |the )?account|unlock (?:your |my |the )?account',
  '(?:passwort|kennwort)\\S{0,3}(?: \\p{L}{1,12}){0,2} (?:zurücksetzen|ändern|festlegen|erstellen|wiederherstellen)|réinitialis|(?:restablecer|restablece|cambiar|recuperar)(?: \\p{L}{1,12}){0,2} contraseña|redefinir(?: \\p{L}{1,12}){0,2} senha|reimposta|(?:reimpostare|cambia)(?: \\p{L}{1,12}){0,2} password',
  'wachtwoord (?:opnieuw instellen|wijzigen|herstellen|resetten)|(?:zresetuj|ustaw|zmień)(?: \\p{L}{1,12}){0,2} hasło|återställ|tilbakestill|nulstil|nollaa|(?:сброс|восстанов|смен)\\p{L}{0,8}(?: \\p{L}{1,12}){0,2} парол|скинути пароль|şifre\\p{L}{0,6} (?:sıfırla|yenile)|đặt lại mật khẩu|atur ulang (?:kata )?sandi',
  '(?:重置|重設|重设|修改|找回)密[码碼]|パスワード(?:を|の)?(?:再設定|リセット|変更)|비밀번호 ?(?:재설정|변경|초기화)|รีเซ็ตรหัสผ่าน|ตั้งรหัสผ่านใหม่|إعادة تعيين كلمة|(?:بازنشانی|تغییر) رمز|איפוס סיסמה|पासवर्ड रीसेट',
);
const VERIFY = words(
  "(?:verify|validate|confirm|activate|authenticate)(?: \\p{L}{1,12}){0,4} (?:e-?mails?|address|accounts?|identity|registration|subscription|sign-?up|sign up|profile|device|membership|it[’']?s you|newsletter|workspace)",
  "^(?:verify|verify now|verify me|confirm now|activate|activate now)$|verify (?:that )?(?:it[’']?s|it was) (?:you|me)|e?-?mail (?:verification|confirmation)|account (?:verification|activation)|(?:complete|finish) (?:your |my |the )?(?:registration|sign-?up|sign up|signing up|setting up your account|account setup)",
  '(?:e-?mail|konto|adresse|registrierung|anmeldung)\\S{0,12}(?: \\p{L}{1,12}){0,2} (?:bestätigen|verifizieren|aktivieren)|(?:confirmer|vérifier|activer|valider)(?: \\p{L}{1,14}){0,3} (?:e-?mail|adresse|compte|inscription)|(?:verifica|verificar|confirmar|confirma|activar|activa|ativar|ative|verifique|confirme|valide)(?: \\p{L}{1,14}){0,4} (?:correo|cuenta|e-?mail|conta|registro|dirección|endereço|cadastro)',
  '(?:verifica|conferma|attiva)(?: \\p{L}{1,14}){0,3} (?:e-?mail|account|indirizzo|iscrizione)|(?:e-?mail\\p{L}{0,6}|account)(?: \\p{L}{1,12}){0,2} (?:verifiëren|bevestigen|activeren)|(?:bevestig|verifieer|activeer)(?: \\p{L}{1,12}){0,2} (?:e-?mail\\p{L}{0,6}|account)|(?:potwierdź|zweryfikuj|aktywuj)(?: \\p{L}{1,14}){0,3} (?:e-?mail|adres|konto|rejestrację)',
  '(?:bekräfta|verifiera|aktivera|bekreft|verifiser|aktiver|bekræft)(?: \\p{L}{1,12}){0,2} (?:e-?post\\p{L}{0,8}|e-?mail\\p{L}{0,8}|konto\\p{L}{0,3})|vahvista|ověř|potvrdit|potvrďte|(?:подтверд|активир)\\p{L}{0,8}|підтверд\\p{L}{0,8}|(?:doğrula|onayla|etkinleştir)|xác (?:minh|nhận|thực)|(?:verifikasi|konfirmasi)',
  '(?:验证|驗證|确认|確認|激活|啟用).{0,6}(?:邮箱|郵箱|邮件|郵件|电子邮件|帐户|账户|帳戶|帳號|账号)|(?:メール|アドレス|アカウント|登録).{0,10}(?:確認|認証|有効化)|(?:이메일|계정).{0,8}(?:인증|확인|활성화)|ยืนยัน(?:อีเมล|บัญชี)|(?:تأكيد|تفعيل|التحقق من) .{0,10}(?:البريد|الحساب|حسابك|بريدك)|(?:تایید|تأیید|فعال‌سازی) .{0,10}(?:ایمیل|حساب)|(?:אימות|אמת)',
);
const SIGN_IN = words(
  '(?:sign|log)(?:ging|ing)?[- ]?(?:in|on)(?![\\p{L}\\p{N}])|\\blogin\\b|magic link|one-time link|passwordless',
  'anmelden|einloggen|se connecter|connectez-vous|iniciar sesión|inicia sesión|fazer login|entrar na|acced(?:i|ere)|inloggen|zaloguj|logga in|logg inn|log ind|kirjaudu|přihlásit|prihlásiť|bejelentkez|conectează|autentific',
  '(?:войти|вход)(?!\\p{L})|увійти|giriş yap|oturum aç|đăng nhập|masuk ke|登录|登錄|登入|ログイン|サインイン|로그인|เข้าสู่ระบบ|تسجيل الدخول|ورود به|התחבר|लॉग ?इन',
);
const INVITE = words(
  "(?:accept|view|open|respond to|decline)(?: \\p{L}{1,12}){0,2} invit(?:e|ation)|join (?:the |your |our |their )?(?:\\S{1,30} ){0,4}(?:team|workspace|organi[sz]ation|project|group|channel|server|board|space|community|repository)|invited you|you(?:[’']ve| have) been invited|you are invited",
  "einladung (?:annehmen|ansehen)|accepter l[’']invitation|rejoindre l|aceptar (?:la )?invitación|aceitar (?:o )?convite|accetta (?:l[’'])?invito|uitnodiging accepteren|przyjmij zaproszenie|принять приглашение|接受邀请|接受邀請|招待を(?:受|承)|초대 ?(?:수락|받기)",
);

const BY_WORDS: Rules = [
  ['unsubscribe', UNSUBSCRIBE],
  ['calendar', CALENDAR],
  ['reset', RESET],
  ['verify', VERIFY],
  ['invite', INVITE],
  ['sign_in', SIGN_IN],
];
/** Paths that leave no doubt, also below words that say something else ("Get started"). */
const BY_PATH: Rules = [
  ['unsubscribe', /unsubscri|opt[-_]?out|email[-_]?preferences|(?:^|[/?&=._-])unsub(?:[/?&=._-]|$)/i],
  [
    'calendar',
    /\.ics(?:[?#]|$)|google\.[a-z.]{2,6}\/calendar\/(?:event|render)|outlook\.(?:live|office)\.com\/calendar|\/add[-_]?to[-_]?calendar/i,
  ],
  [
    'reset',
    /(?:reset|forgot|recover|change|new|set|create)[-_/]?(?:your[-_]?)?password|password[-_/]?(?:reset|recovery|change|new|set|edit)|reset[-_]?pw|passwordreset|account[-_/]recovery/i,
  ],
  [
    'verify',
    /(?:verify|confirm|activate|validate)[-_/]?(?:your[-_]?)?(?:e-?mail|account|user|registration|signup|sign-up|address|subscription|identity)|(?:e-?mail|account|user|registration|signup|address)s?[-_/](?:verify|verification|confirm|confirmation|activate|activation|validate|validation)|[/?&](?:verification|verify|confirmation|activation)[-_]?(?:token|code|key)=|[/_-]double[-_]?opt[-_]?in/i,
  ],
  [
    'invite',
    /\/(?:accept[-_]?)?invit(?:e|es|ation|ations)(?:[/?#]|$)|accept[-_]?invit|invitation[-_]?token/i,
  ],
  [
    'sign_in',
    /magic[-_]?(?:link|login)|(?:login|signin|sign-in)[-_]?(?:link|token|with-token)|passwordless|one[-_]?time[-_]?login|[?&](?:login_token|magic_token)=/i,
  ],
];
/** Paths that count if the words say nothing: "Click here". */
const BY_VAGUE_PATH: Rules = [
  ['verify', /\/(?:verify|verification|confirm|confirmation|activate|activation|validate)(?:[/?#._-]|$)/i],
  ['reset', /\/(?:reset|recover)(?:[/?#._-]|$)/i],
  ['sign_in', /\/(?:log[-_]?in|sign[-_]?in|auth|authenticate|session)(?:[/?#._-]|$)/i],
];
/** Words that say nothing about the target. */
const GENERIC =
  /^(?:|(?:please )?(?:click|tap|press)?(?: on)? ?(?:here|this|the)?(?: (?:link|button|url))?(?: below)?|link|button|continue|next|get started|start(?: now)?|let[’']?s go|go|open|yes|yes,? (?:it[’']?s|that[’']?s|this is|it was) me|ok|okay|proceed|confirm|submit|accept|agree|hier(?: klicken)?|klicken sie hier|bestätigen|weiter|ici|cliquez ici|cliquer ici|confirmer|continuer|aquí|haz clic aquí|haga clic aquí|pulsa aquí|confirmar|continuar|aqui|clique aqui|qui|clicca qui|conferma|continua|klik hier|bevestigen|kliknij tutaj|tutaj|klicka här|här|klikk her|klik her|her|tästä|zde|ide|kattints ide|здесь|сюда|нажмите здесь|подтвердить|tıklayın|buraya tıklayın|tại đây|di sini|klik di sini|点击这里|点击此处|點擊這裡|點此|确认|確認|こちら|ここをクリック|여기|여기를 클릭|확인|ที่นี่|คลิกที่นี่|هنا|اضغط هنا|اینجا|כאן|यहाँ)[\s.!:›»→>]*$/iu;
const URL_WORDS = /^(?:https?:\/\/|www\.)\S*$/i;

export interface LinkEvidence {
  words: string;
  /** The text before the link. */
  before: string;
  url: string;
  subject: string;
}

/**
 * Derives what a link is for: from its words; from its address; and, if its words say nothing ("Click here"), from the
 * text before it and from the subject.
 */
export function deriveLinkKind({ words: text, before, url, subject }: LinkEvidence): LinkKind {
  const label = text.trim().slice(0, 200);
  const isGeneric = GENERIC.test(label) || URL_WORDS.test(label);
  const path = url.slice(0, 500);
  const byWords = isGeneric ? null : match(BY_WORDS, label);
  if (byWords) return byWords;
  const byPath = match(BY_PATH, path);
  if (byPath) return byPath;
  if (!isGeneric) return 'other';
  const sentence = before.slice(-200);
  return match(BY_WORDS, sentence) ?? match(BY_VAGUE_PATH, path) ?? matchSubject(subject, path) ?? 'other';
}

function match(rules: Rules, text: string): LinkKind | null {
  return rules.find(([, expression]) => expression.test(text))?.[0] ?? null;
}

/** The subject speaks for a link with a token alone, since a mail has links to other pages too. */
function matchSubject(subject: string, path: string): LinkKind | null {
  return /[A-Za-z0-9_-]{16}/.test(path.replace(/^https?:\/\/[^/]{0,255}/i, ''))
    ? match(BY_WORDS, subject.slice(0, 200))
    : null;
}
