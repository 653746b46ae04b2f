/**
 * Names of one-time codes in the languages of most sign-in mail. Words in scripts without spaces need no boundary; the
 * others must not be part of a longer word.
 */
const EN_KINDS =
  'verification|verify|authentication|authorization|activation|security|one[- ]?time|sign[- ]?in|sign[- ]?up|log[- ]?in|' +
  '2fa|mfa|two[- ]?(?:factor|step)|multi[- ]?factor|two[- ]?(?:factor|step) (?:authentication|verification)|magic|device|recovery|temporary';
const SPECIFIC_WORDS = [
  `(?:${EN_KINDS})[ -](?:pass)?(?:code|pin)`,
  '(?:one[- ]time|single[- ]use|temporary) (?:passcode|password|pin)',
  'otp',
  'otp code',
  'verification (?:pin|number)',
  'code to (?:verify|sign|log|authenticate|confirm your (?:e-?mail|account|identity))',
  // German, Dutch and the languages of Scandinavia write one word.
  '(?:bestätigungs|sicherheits|verifizierungs|verifikations|einmal|anmelde|authentifizierungs|aktivierungs|zugangs|login-?|freischalt)-?(?:code|kode|passwort|kennwort|pin)',
  '(?:m|sms-?)?tan',
  '(?:verificatie|beveiligings|inlog|bevestigings|toegangs|activerings|activatie)-?code',
  '(?:verifierings|verifikations|bekräftelse|säkerhets|engångs|inloggnings|aktiverings)-?kod(?:en)?',
  '(?:bekreftelses|sikkerhets|engangs|verifiserings|verifikations|verificerings|bekræftelses|sikkerheds|innloggings|godkendelses)-?kode[nr]?',
  '(?:vahvistus|kertakäyttö|turva|todennus|kirjautumis)-?koodi(?:si)?',
  "code (?:de |d[’'])(?:vérification|verification|sécurité|securite|connexion|validation|authentification|accès|activation)",
  '(?:code|mot de passe) à usage unique',
  'c[óo]digo de (?:verificaci[óo]n|seguridad|acceso|inicio de sesi[óo]n|autenticaci[óo]n|activaci[óo]n|un solo uso|validaci[óo]n)',
  'contraseña de un solo uso',
  'c[óo]digo de (?:verifica[çc][ãa]o|seguran[çc]a|acesso|autentica[çc][ãa]o|login|ativa[çc][ãa]o|uso [úu]nico)',
  'codice (?:di (?:verifica|sicurezza|accesso|autenticazione|attivazione)|monouso|usa e getta|otp)',
  'kod (?:weryfikacyjny|bezpieczeństwa|jednorazowy|dostępu|logowania|autoryzacyjny|aktywacyjny|uwierzytelniający)',
  '(?:ověřovací|overovací|bezpečnostní|bezpečnostný|jednorázový|jednorazový|přihlašovací|aktivační) kód',
  '(?:ellenőrző|biztonsági|megerősítő|hitelesítő|belépési) ?kód(?:ja|od)?',
  'cod(?:ul)? (?:tău )?de (?:verificare|securitate|acces|autentificare|activare)',
  '(?:doğrulama|güvenlik|giriş|aktivasyon) (?:kodu|kodunuz)',
  'tek kullanımlık (?:şifre|kod|parola)\\p{L}{0,6}',
  'код (?:подтверждения|проверки|безопасности|доступа|активации|авторизации|для входа|підтвердження|перевірки|безпеки|доступу|за потвърждение)',
  '(?:одноразов|проверочн)ый (?:код|пароль)',
  'κωδικ(?:ός|ό) (?:επαλήθευσης|επιβεβαίωσης|ασφαλείας|μίας χρήσης|πρόσβασης)',
  'mã (?:xác (?:minh|nhận|thực)|bảo mật|otp)',
  '(?:kode|kod) (?:verifikasi|otp|keamanan|konfirmasi|masuk|pengesahan|keselamatan)',
];
const SPECIFIC_UNSPACED = [
  '(?:验证|驗證|校验|校驗|认证|認證|动态|動態|安全|登录|登入|激活)(?:代)?[码碼]',
  '(?:一次性|动态|動態)密[码碼]',
  '(?:認証|検証|セキュリティ|ログイン|ワンタイム|本人確認) ?(?:コード|番号|パスワード)',
  '(?:ご)?確認コード',
  '(?:인증|보안|로그인|일회용|확인) ?(?:번호|코드|비밀번호)',
  'รหัส ?(?:ยืนยัน|otp|ผ่านครั้งเดียว|ผ่านแบบใช้ครั้งเดียว|ความปลอดภัย|เข้าสู่ระบบ)',
  '(?:رمز|كود) (?:التحقق|التأكيد|الأمان|الدخول|المصادقة|التفعيل|تسجيل الدخول)',
  '(?:کد|رمز) (?:تایید|تأیید|امنیتی|ورود|یکبار ?مصرف|یک‌بار مصرف)',
  'קוד (?:ה)?(?:אימות|אבטחה|כניסה|חד[- ]פעמי)',
  '(?:सत्यापन|सुरक्षा) (?:कोड|कूट)|ओटीपी',
  'যাচাইকরণ কোড|ওটিপি',
];
/** Words that also name codes of other kinds: they count only in mail about signing in. */
const VAGUE_WORDS = [
  'pin(?! code)',
  // Also at the end of a compound: Wachtwoordherstelcode, nulstillingskode, Sisäänkirjautumiskoodi.
  '[\\p{L}-]{0,30}(?:codes?|kode[nr]?|kod(?:en)?|koodi(?:si)?|kood|kód(?:ot|od|ja)?)',
  'kod(?:u|unuz|as|s|i|ea|ingiz|lar)',
  'koda',
  'kôd|kòd',
  'cod(?:ul|i)?',
  'código|codigo|codice',
  'код(?:\\p{L}{0,5})?',
  'κωδικ(?:ός|ό|ού)',
  'კოდი',
  'mã',
];
const VAGUE_UNSPACED = ['コード', '코드', '代[码碼]', 'รหัส', 'رمز', 'کد', '(?:ال)?كود', 'קוד', 'कोड'];

const bounded = (words: readonly string[]) => `(?<![\\p{L}\\p{N}_])(?:${words.join('|')})(?![\\p{L}\\p{N}_])`;
const SPECIFIC = `${bounded(SPECIFIC_WORDS)}|${SPECIFIC_UNSPACED.join('|')}`;
const KEYWORD = new RegExp(
  `(?<specific>${SPECIFIC})|${bounded(VAGUE_WORDS)}|${VAGUE_UNSPACED.join('|')}`,
  'giu',
);

/** What a mail with a sign-in code speaks of. */
const SIGN_IN = new RegExp(
  [
    'verif(?:y|ying|ication)',
    '\\byour (?:\\w{1,20} )?code(?: is|:)|\\bis your (?:\\S{1,20} ){1,3}code\\b|(?:valid for|expires? in) (?:\\d{1,3}|five|ten|fifteen|thirty) min',
    'sign(?:ing)?[- ]?(?:in|up)|log(?:ging)?[- ]?(?:in|on)\\b|login',
    'authenticat|two[- ]?(?:factor|step)|\\b2fa\\b|\\bmfa\\b|one[- ]?time',
    'confirm your (?:e-?mail|account|identity|registration)|confirmation code to',
    "(?:didn|did no)[’']?t (?:request|try|ask)|did not (?:request|try|ask)|(?:do not|don[’']t|never) share",
    '(?:reset|forgot|change|new) (?:\\w{1,10} )?password|create (?:your|an) account',
    'anmeld|einlogg|bestätig|passwor[td]|connexion|connecter|vérifi|iniciar sesión|verifica|acced(?:i|ere)|inlogg|logga in|zalog|weryfik|giriş|doğrula',
    'войти|вход|подтвер|парол|увійти|σύνδεσ|đăng nhập|xác (?:minh|nhận|thực)|masuk|verifikasi',
    '登录|登錄|登入|验证|驗證|注册|註冊|ログイン|認証|確認|登録|로그인|인증|เข้าสู่ระบบ|ยืนยัน',
    'تسجيل الدخول|التحقق|ورود|تایید|התחבר|אימות|लॉग ?इन|सत्याप',
    // Passwords, sign-in and confirmation in more languages.
    'senha|palavra-passe|contraseña|contrasenya|mot de passe|lösenord|passord|adgangskode|wachtwoord|salasana|salasõna|hasł|hesl[ao]|jelszó|lozink|gesl[ao]|slaptažod|parol|modpas|pasahitza|şifr',
    'prijav|prihl[áa]s|přihlás|aanmeld|connect|conect|pieteikšan|prisijung|sisselogi|kirjautu|kirish|saio-hasiera|koneksyon|inici de sessió|de entrada|log ?ind|logg inn',
    'potvr|potrdi|potrđ|overen|ověř|verifi[kc]|verifiser|apstiprin|patvirtin|kinnit|egiazta|konfime|tasdiq|təsdiq|onay|bekræft|bekreft|bekräft',
    'лозинк|пријав|потврд|потвърд|верифик|влизан|нууц үг|нэвтр|баталгаажуул|купуя|кирүү|дуруст|πρόσβασης|επαλήθευσ|ვერიფიკ|შესვლ|პაროლ',
    'كلمة المرور|تأكيد|گذرواژه|סיסמ|รหัสผ่าน|ลงชื่อเข้าใช้|비밀번호|密[码碼]|パスワード',
  ].join('|'),
  'iu',
);

/** Mail about a journey, a meeting or a network: its codes are for those. */
const OTHER_SUBJECTS =
  /(?<!\p{L})(?:reservations?|itinerary|boarding|check-in|checked in|flights?|your (?:stay|trip|booking)|hotel|meeting id|zoom|webinar|dial-in|wi-?fi|buchung|flug|réservation|vol|reserva|vuelo|prenotazione|volo|boeking|rezerwacja)(?!\p{L})|予約|预订|預訂|航班|예약/iu;

/** Codes of other kinds, by the words before or after the vague word. */
const OTHER_KIND_BEFORE =
  /(?:promo(?:tion(?:al)?)?|discount|coupon|voucher|gift(?: ?card)?|zip|post(?:al)?|area|country|error|source|qr|bar|track(?:ing)?|booking|reservation|reference|product|item|dress|swift|sort|order|referral|status|tax|style|colou?r|offer|savings?|sku|model|pin|wi-?fi|pick-?up|collection|redemption|reward|airport|building|door|gate|flight|store|customer|licen[cs]e|rabatt|gutschein|aktions|kortings|zip|morse|exit|machine|open[- ]source|of|genetic|legal|penal|civil)[ -]?$/iu;
const OTHER_KIND_AFTER =
  /^[ -]?(?:promo|postal|barres|qr|rabat|promocional|postale|sconto|fiscal|de (?:réduction|réservation|suivi|descuento|reserva|seguimiento|rastreio|conduct)|of conduct|review|rabatowy|pocztowy|pengiriman|name|pos\b|base\b|freeze|snippet|change|editor)/iu;
/** A line about buying: its code is a coupon. */
const SHOPPING =
  /[%€£]|\$\d|\boff\b|discount|checkout|coupon|voucher|free shipping|\bsale\b|rabatt|gutschein|descuento|réduction|sconto/iu;

export interface Keyword {
  start: number;
  end: number;
  /** It names one-time codes only. */
  isSpecific: boolean;
}

/** Whether a text speaks of signing in, so that the word "code" alone names a one-time code. */
export function isAboutSignIn(text: string): boolean {
  return SIGN_IN.test(text) && !OTHER_SUBJECTS.test(text);
}

/**
 * Finds the words that name a one-time code.
 *
 * @param line at most some thousand characters.
 * @param allowVague see {@link isAboutSignIn}.
 */
export function findKeywords(line: string, { allowVague }: { allowVague: boolean }): Keyword[] {
  const isShopping = SHOPPING.test(line);
  const found: Keyword[] = [];
  for (const match of line.matchAll(KEYWORD)) {
    const [start, end] = [match.index, match.index + match[0].length];
    const isSpecific = match.groups?.specific !== undefined;
    if (!isSpecific && (!allowVague || isShopping)) continue;
    if (!isSpecific && OTHER_KIND_BEFORE.test(line.slice(Math.max(0, start - 20), start))) continue;
    if (OTHER_KIND_AFTER.test(line.slice(end, end + 30))) continue;
    found.push({ start, end, isSpecific });
  }
  return found;
}
