/** The reason for a failed delivery, derived from text. */
export type BounceReason =
  | 'user_unknown'
  | 'host_unknown'
  | 'mailbox_full'
  | 'account_disabled'
  | 'moved'
  | 'too_big'
  | 'expired'
  | 'network'
  | 'loop'
  | 'relay_denied'
  | 'policy'
  | 'temporary'
  | 'system'
  | 'suppressed';

interface ReasonRule {
  reason: BounceReason;
  /** The matching enhanced status code (RFC 3463), for reports without one. */
  status: string;
  patterns: readonly RegExp[];
}

/**
 * Phrases that mail servers use, specific ones first: "user unknown, see our policy" is about the user. No expression
 * has more than one unbounded repetition, so each takes linear time.
 */
const REASON_RULES: readonly ReasonRule[] = [
  { reason: 'temporary', status: '4.7.1', patterns: [/\bgr[ea]y-?list/iu] },
  {
    reason: 'suppressed',
    status: '5.1.1',
    patterns: [
      /\bsuppression[- ]list\b/iu,
      /\b(?:address(?:es)?|recipients?|destination|account|user|domain|delivery|sending)(?: \S{1,60}){0,6} suppress(?:ed|ion)\b/iu,
      /\bsuppressed (?:address|recipient|destination|because|due|by|on)\b/iu,
      /\bon (?:the|your|our) (?:bounce|block) list of your account\b/iu,
      /\bbounced address\b/iu,
    ],
  },
  {
    reason: 'mailbox_full',
    status: '5.2.2',
    patterns: [
      /\b(?:mail ?box|mailfolder|mail folder|inbox|account|user|recipient|disk|storage|quota|maildir|mail drop|message store|mail store|spool)(?:'s)?(?: \S{1,60}){0,4} (?:is |are |was |has |have |been |currently |temporarily |already ){0,3}(?:full|over ?quota|out of (?:disk )?space|exceeded|exceeds|overdrawn|exhausted|too full)\b/iu,
      /\b(?:over|exceed(?:s|ed|ing)?|out of|not enough|insufficient|no more|lack of)(?: \S{1,30}){0,5} (?:quota|mailbox (?:size|limit|space)|storage(?: space)?|disk space|disk quota|space|system storage|storage allocation)\b/iu,
      /\bover ?quota\b/iu,
      /\bquota(?: has been| is| was)? ?(?:exceed(?:ed)?|violation|full|limit)/iu,
      /\bmailbox(?:_| )?full\b/iu,
      /\bmail ?box (?:size )?(?:limit|quota)\b/iu,
      /\b(?:mailbox|inbox) (?:size )?exceed/iu,
      /\bfull mailbox\b/iu,
      /\btoo many messages (?:in|on) (?:the |this )?mailbox/iu,
      /\bnumber of messages in recipient'?s mailbox exceeded/iu,
      /user has too many messages/iu,
      /\bexceeds? (?:the |its |their )?(?:allowed|allocated|maximum) (?:storage|space)\b/iu,
      /\b(?:not|n't|no)(?: have)? (?:enough|sufficient)(?: \S{1,20}){0,3} (?:space|storage|room)\b/iu,
      /\b(?:space|storage|quota) (?:is )?(?:not enough|insufficient|full|exhausted|used up)\b/iu,
      /\breach(?:ed|es|ing)?(?: \S{1,20}){0,4} (?:quota|storage limit|mailbox limit)\b/iu,
      /\b(?:diskspace|storage|mail) quota\b/iu,
      /\bdisk (?:is )?full\b/iu,
      /\bVS\d?-?MF\b/iu,
      /\bSTOREDRV\.Deliver; ?(?:mailbox )?full/iu,
      /\bQuotaExceeded/iu,
      /\brecipient (?:storage|mailbox) (?:is )?full/iu,
      /\bPostfach (?:ist )?(?:voll|überfüllt)/iu,
      /(?:Speicher|Kontingent)\S{0,20} (?:ist )?(?:überschritten|voll|erschöpft)/iu,
      /bo[iî]te aux lettres (?:\S{1,20} ){0,3}(?:pleine|saturée)/iu,
      /bo[iî]te (?:\S{1,20} ){0,3}(?:est )?pleine/iu,
      /buz[oó]n (?:\S{1,20} ){0,4}(?:est[aá] )?llen[oa]/iu,
      /caixa (?:postal|de (?:correio|entrada)) (?:\S{1,20} ){0,3}(?:está )?cheia/iu,
      /casella (?:\S{1,20} ){0,3}(?:è )?piena/iu,
      /(?:postvak|mailbox) (?:\S{1,20} ){0,3}(?:is )?vol\b/iu,
      /переполнен/iu,
      /превышен\S{0,5} (?:квот|лимит)/iu,
      /容量(?:が|を|に|の)?(?:\S{0,12})(?:超|一杯|いっぱい|不足|オーバー)/iu,
      /メールボックス\S{0,12}(?:一杯|いっぱい|満杯|フル)/iu,
      /邮箱(?:\S{0,6})(?:已?满|空间不足|容量)/iu,
      /信箱(?:\S{0,6})(?:已?滿|空間不足)/iu,
      /skrzynk\S{1,3} (?:\S{1,30} ){0,4}(?:pełn|przepełnion)/iu,
      /(?:brevlåda|postlåda|postkasse|postboks|innboks|indbakke|inkorg)\S{0,3} (?:\S{1,30} ){0,3}(?:full|fuld)/iu,
      /postilaatik\S{1,3} (?:\S{1,30} ){0,3}(?:täynnä|täysi)/iu,
      /schránk\S{1,2} (?:\S{1,30} ){0,3}(?:pln[áa]|přeplněn)/iu,
      /postafiók\S{0,3} (?:\S{1,30} ){0,3}(?:megtelt|tele)/iu,
      /posta kutusu (?:\S{1,30} ){0,3}dolu/iu,
      /(?:cutie|căsuț)\S{0,4} (?:\S{1,30} ){0,3}plină/iu,
      /(?:γραμματοκιβώτιο|θυρίδα)\S{0,2} (?:\S{1,30} ){0,3}(?:γεμάτ|πλήρ)/iu,
      /(?:편지함|메일함|사서함|저장 ?공간|용량)\S{0,3} ?(?:\S{1,12} ){0,2}(?:가득|초과|부족)/iu,
    ],
  },
  {
    reason: 'user_unknown',
    status: '5.1.1',
    patterns: [
      /\b(?:account|user|recipient|address|mailbox|person|e-?mail)(?: address)?,?(?: that)? you(?:'ve| have)? (?:tried|are trying|attempted|entered|sent)(?: \S{1,20}){0,4}(?: is| was)? (?:does not|doesn't|not|n't|un(?:known|available)|invalid)/iu,
      /\b(?:user|recipient|mail ?box|address|addressee|account|alias|person|e-?mail|user ?name|login|destinatary|customer|subscriber|member|resolver\S{0,40})(?:\(s\)|s)?(?:'s)?(?: (?:e-?mail|address|name|account|mail ?box|in|of|for|to|domain|at|host))?(?: ?[<"'([]?[^\s<>"'()[\]]{1,120}[>"')\]]?)?,?:? ?(?:(?:is|was|are|has been|have been|does|do|could|can|currently) ){0,2}(?:unknown|unrecognised|unrecognized|invalid|not ?found|not (?:be )?(?:found|valid|exist(?:ing)?|known|recognised|recognized|listed|located|correct|a (?:known|valid)|our customer|have an? (?:\S{1,20} )?account)|n[o']t exists?|doesn't (?:exist|have)|does not (?:exist|have)|did not exist|not exist|nonexistent|non-existent|non existent|not available|unavailable|undeliverable|cannot be found|couldn't be found|can't be found|wasn't found|no longer (?:exist|valid|available|on|in use|used|active|here|accept)|not local|ambiguous)/iu,
      /\b(?:user|recipient|mail ?box|addressee|account|e-?mail address|address)(?: ?[<"'([]?[^\s<>"'()[\]]{1,120}[>"')\]]?)?:? (?:(?:is|was|has been) )?rejected\b(?!: (?:greylist|access denied|domain|host|unverified))/iu,
    ],
  },
  {
    reason: 'user_unknown',
    status: '5.1.1',
    patterns: [
      /\b(?:no such|unknown|invalid|nonexistent|non-existent|non existent|not a (?:valid|known)|bad (?:destination )?|undeliverable|unrecognized|unrecognised|no valid|no)(?: (?:local|e-?mail|mail|virtual|remote|destination|receipient|final|delivery|such|or|illegal|internal|host|mobile))* ?(?:user(?: ?id)?|recipient|mail ?box(?:es)?|addressee|account|person|alias|subscriber|inbox|addres+|addr)(?:s|\(s\)|es)?\b(?! (?:error|mails? from|domain|host|server))/iu,
      /\b(?:bad|no such|unknown|invalid)_(?:recipient|user|address|mailbox)/iu,
      /\bRecipNotFound/iu,
      /RecipientNotFound/iu,
      /\bADR\.Recip/iu,
      /\bUser not listed/iu,
      /not listed in (?:public |Domino |the )?(?:Name & Address|directory|Domino Directory)/iu,
      /\bno (?:mailbox|account) (?:here )?by that name/iu,
      /mailbox here by that name/iu,
      /\b(?:I'm afraid I wasn't able|that account doesn't exist)/iu,
      /doesn't have an? \S{1,60} account/iu,
      /this user doesn't have an?/iu,
      /name is not recogni[sz]ed/iu,
      /unable to (?:find|look ?up|validate) (?:the )?(?:recipient|user|account|mailbox)/iu,
      /not our customer/iu,
      /\bnot an? (?:valid|known|active|existing|local) (?:e-?mail )?(?:mail ?box|user|recipient|address|account)/iu,
      /can(?:not|'t) find (?:the )?(?:user|recipient|mailbox)/iu,
      /couldn't find (?:the )?(?:user|recipient|address)/iu,
      /recipient (?:address )?rejected(?!: (?:greylist|access denied|domain|host|unverified))/iu,
      /address rejected(?!: (?:greylist|access denied|domain|host|unverified))/iu,
      /no one (?:here )?by that name/iu,
      /chkusr/iu,
      /unrouteable address/iu,
      /unroutable address/iu,
      /unknown local[- ]?part/iu,
      /unknown address/iu,
      /Empf[äa]nger(?:\S{0,12}) (?:\S{1,40} ){0,3}(?:unbekannt|nicht (?:gefunden|bekannt|vorhanden)|existiert nicht|ung[üu]ltig)/iu,
      /unbekannter (?:Empf[äa]nger|Benutzer)/iu,
      /(?:Adresse|Postfach|Benutzer|Konto) (?:\S{1,60} ){0,4}(?:existiert nicht|nicht gefunden|unbekannt|ung[üu]ltig|wurde nicht gefunden|konnte nicht gefunden)/iu,
      /(?:utilisateur|destinataire|adresse|bo[îi]te aux lettres)(?: \S{1,60}){0,4} (?:inconnue?|introuvable|inexistante?|n'existe pas|invalide|n'a pas été trouvée?)/iu,
      /(?:usuario|destinatario|direcci[oó]n|cuenta|buz[oó]n)(?: \S{1,60}){0,4} (?:desconocid[oa]|no (?:existe|encontrad[oa]|v[aá]lid[oa]|se (?:ha )?enc(?:ontr|uentr)\S{0,4})|inv[aá]lid[oa]|inexistente)/iu,
      /(?:usu[aá]rio|destinat[aá]rio|endereço|conta)(?: \S{1,60}){0,4} (?:desconhecid[oa]|n[ãa]o (?:existe|encontrad[oa]|foi encontrad[oa])|inv[aá]lid[oa]|inexistente)/iu,
      /(?:utente|destinatario|indirizzo|casella)(?: \S{1,60}){0,4} (?:sconosciut[oa]|non (?:esiste|trovat[oa]|valid[oa]|disponibile)|inesistente)/iu,
      /(?:gebruiker|ontvanger|adres|geadresseerde)(?: \S{1,60}){0,4} (?:onbekend|bestaat niet|niet gevonden|ongeldig)/iu,
      /(?:пользователь|получатель|адрес|почтовый ящик|учетная запись)\S{0,3}(?: \S{1,60}){0,4} (?:не (?:найден|существует|зарегистрирован|обнаружен)|неизвест|недоступ)/iu,
      /(?:нет такого|неизвестный|несуществующ\S{2,3}) (?:пользовател|получател|адрес|ящик)/iu,
      /あて先(?:\S{0,20})(?:存在しない|見つかり|不明|ありません|まちがい|間違)/iu,
      /宛先(?:\S{0,30})(?:存在しない|存在しません|見つかり|不明|ありません|まちがい|間違|誤り)/iu,
      /(?:ユーザ|アドレス|受信者|メールボックス)(?:\S{0,20})(?:存在しない|存在しません|見つかりません|見つかりませんでした|不明|ありません|ございません|まちがい|間違|誤り|使われておりません|使用されておりません)/iu,
      /(?:用户|用戶|收件人|地址|帐号|帳號|邮箱|信箱)(?:\S{0,12})(?:不存在|未找到|找不到|无效|無效|未知)/iu,
    ],
  },
  {
    reason: 'host_unknown',
    status: '5.1.2',
    patterns: [
      /\b(?:host|domain|hostname|mx|server)(?: or domain)?(?: name)?(?: [<"'(]?[^\s<>"'():]{1,120}[>"')]?)?:? (?:(?:is|was|has|does|do|could|lookup|name|of) ){0,3}(?:unknown|not ?found|not be found|not (?:exist|resolve[d]?|valid)|n[o']t exist|invalid|nxdomain|unroutable|unresolvable|not be resolved)/iu,
      /\b(?:no such|unknown|invalid|nonexistent|illegal|bad|unrouteable|cannot find(?: the)?|couldn't find(?: any| the)?|can't find(?: the)?|unable to (?:find|resolve|locate|route)(?: any| the)?)(?: (?:mail|destination|remote|recipient|address|your|e-?mail))* (?:domain|host|mx|mail exchanger|hostname|mail ?server)\b/iu,
      /\bNXDOMAIN\b/iu,
      /\bhost unknown\b/iu,
      /couldn't find any host/iu,
      /no (?:mx|a) record/iu,
      /no mail (?:server|exchanger)s?/iu,
      /domain (?:is )?(?:not used|used for sending)/iu,
      /nullMX/iu,
      /null ?mx/iu,
      /does not accept (?:any )?(?:e-?)?mail\b/iu,
      /no relay hosts?/iu,
      /host \S{1,200} not found/iu,
      /unable to route/iu,
      /all relevant MX records point to non-existent/iu,
      /doesn't accept mail/iu,
      /Name or service not known/iu,
      /(?:Domain|Host)(?: \S{1,60}){0,3} (?:existiert nicht|nicht gefunden|unbekannt)/iu,
      /domaine (?:\S{1,60} ){0,3}(?:inconnu|introuvable|n'existe pas)/iu,
      /dominio (?:\S{1,60} ){0,3}(?:no (?:existe|encontrado)|desconocido|non (?:esiste|trovato))/iu,
      /domínio (?:\S{1,60} ){0,3}(?:não (?:existe|encontrado))/iu,
      /домен\S{0,3} (?:\S{1,60} ){0,3}не (?:найден|существует)/iu,
      /ドメイン(?:\S{0,20})(?:存在しない|存在しません|見つかり)/iu,
      /域名(?:\S{0,8})(?:不存在|无效|無法|无法)/iu,
    ],
  },
  {
    reason: 'account_disabled',
    status: '5.2.1',
    patterns: [
      /\b(?:user|recipient|mail ?box|address|account|e-?mail|inbox|customer)(?:\(s\)|s)?(?:'s)?(?: (?:e-?mail|address|account|mail ?box))?(?: [<"'(]?[^\s<>"'()]{1,120}[>"')]?)? (?:(?:is|was|are|has been|have been|currently|temporarily|been|administratively) ){0,4}(?:disabled|inactive|in-?active|deactivated|suspended|locked|closed|expired|terminated|deleted|discontinued|cancell?ed|blocked|dormant|retired|not active|frozen|restricted)\b/iu,
      /\b(?:disabled|inactive|deactivated|suspended|expired|closed|dormant|discontinued)(?: \S{1,20})? (?:user|recipient|mail ?box|address|account)\b/iu,
      /\bno longer (?:with|works?|employed)\b/iu,
      /account (?:that you tried to reach )?is (?:disabled|inactive|over)/iu,
      /(?:Konto|Postfach|Adresse) (?:\S{1,40} ){0,3}(?:gesperrt|deaktiviert|gel[öo]scht)/iu,
      /compte (?:\S{1,40} ){0,3}(?:désactivé|suspendu|fermé|bloqué)/iu,
      /cuenta (?:\S{1,40} ){0,3}(?:desactivada|suspendida|inactiva|bloqueada)/iu,
      /заблокирован/iu,
      /отключен[аы]?\b/iu,
      /停止され/iu,
      /利用停止/iu,
      /停用/iu,
      /已禁用/iu,
      /被禁用/iu,
      /休眠/iu,
    ],
  },
  {
    reason: 'moved',
    status: '5.1.6',
    patterns: [
      /\bhas(?: been)? moved\b/iu,
      /\bnew address is\b/iu,
      /\bmoved to (?:another|a new) address\b/iu,
      /has been replaced by/iu,
      /please (?:use|update) (?:the|my) new address/iu,
    ],
  },
  {
    reason: 'too_big',
    status: '5.3.4',
    patterns: [
      /\b(?:message|mail|e-?mail|size|header|attachment|data|content|messages)(?: \S{1,20}){0,5} (?:too (?:big|large|long)|exceed(?:s|ed|ing)?(?: \S{1,20}){0,5} (?:size|limit|maximum|max)\b(?! (?:number|deliver|retr|attempt|hop|time|count|age))|larger than|over ?size|size limit|over the (?:maximum|limit))/iu,
      /\btoo (?:big|large)(?: an? )?(?: e-?mail| message)?\b/iu,
      /\bmaximum (?:message|mail|allowable|allowed) (?:file )?size/iu,
      /\bmessage size (?:exceed|limit|violat)/iu,
      /\bsize (?:exceeds|limit exceeded)/iu,
      /\bmax(?:imum)? size\b/iu,
      /\b(?:message )?length exceeds administrative limit/iu,
      /MSGSIZE/iu,
      /RecipientSizeLimit/iu,
      /Nachricht (?:\S{1,20} ){0,4}zu gro(?:ß|ss)/iu,
      /message (?:\S{1,20} ){0,4}trop (?:gros|volumineux|grand)/iu,
      /mensaje (?:\S{1,20} ){0,4}demasiado grande/iu,
      /サイズ(?:\S{0,12})(?:超|大き)/iu,
    ],
  },
  {
    reason: 'loop',
    status: '5.4.6',
    patterns: [
      /\b(?:mail|routing|message|forwarding|email|e-mail)?[ -]?loop(?:s|ing|back)?\b(?: (?:detected|back|error|count))?/iu,
      /\btoo many (?:hops|"?received"?|mail hops)/iu,
      /\bhop count exceeded/iu,
      /\bmaximum hop/iu,
      /loops back to (?:me|myself)/iu,
    ],
  },
  {
    reason: 'expired',
    status: '4.4.7',
    patterns: [
      /\b(?:message|mail|delivery|retry|queue|it|time|transfer|has|lifetime)(?: \S{1,20}){0,4} (?:expired|timed? ?-?out|timeout exceeded|too long|time limit|lifetime)\b/iu,
      /\bexpired\b(?!.{0,20}(?:account|password|certificate))/iu,
      /\bretry time ?(?:out)? (?:not reached|exceeded)/iu,
      /\bretry timeout\b/iu,
      /\bin the queue too long/iu,
      /\bexceed(?:s|ed)? (?:the )?max(?:imum)? (?:number of )?(?:delivery )?(?:attempts|retries|deliver)/iu,
      /\b(?:could|was|has) not (?:be )?(?:been )?delivered (?:with)?in (?:\S{1,12} ){1,3}(?:hours?|days?)/iu,
      /\bunable to deliver (?:this|your) message after/iu,
      /\b(?:was|were|been) (?:tried|attempted|retried) for (?:\S{1,12} ){1,3}(?:hours?|days?)\b/iu,
      /\bgiving up (?:on|after|now)/iu,
      /cannot send message (?:within|for)/iu,
      /delivery attempts? (?:has|have|were) (?:been )?(?:failing|exhausted|unsuccessful)/iu,
      /too many (?:failed )?(?:delivery )?attempts/iu,
      /Delivery failed \d+ attempts/iu,
      /delivery time ?-?(?:out|expired)/iu,
      /exceeded (?:the )?(?:maximum|max) (?:number of )?(?:retr|delivery)/iu,
      /Zeit(?:limit|überschreitung)/iu,
      /配送期限/iu,
      /再送(?:\S{0,12})(?:失敗|できません)/iu,
    ],
  },
  {
    reason: 'relay_denied',
    status: '5.7.1',
    patterns: [
      /\b(?:relay(?:ing)?|relaying to \S{1,200}|mail relay|open relay)(?: \S{1,20}){0,3} (?:denied|not (?:allowed|permitted|authorized)|prohibited|rejected|refused|unavailable|restricted|forbidden)/iu,
      /\b(?:unable|not permitted|not allowed|not authorized|denied|cannot|can't|won't|refuse|refusing|will not) (?:to )?relay/iu,
      /\brcpthosts/iu,
      /we do not relay/iu,
      /not (?:an )?(?:allowed |local )?(?:relay|gateway)/iu,
      /no relay(?:ing)?\b/iu,
      /\brelay access/iu,
    ],
  },
  {
    reason: 'temporary',
    status: '4.7.1',
    patterns: [
      /\btry (?:again )?(?:later|after|in \d+)/iu,
      /\bplease (?:try|retry)(?: again)? later/iu,
      /\btemporar(?:y|ily)\b/iu,
      /\brate[- ]?limit/iu,
      /\bthrottl/iu,
      /\btoo (?:many|much) (?:connections|mail|messages|recipients|emails|concurrent|errors|sessions)/iu,
      /\b(?:receiving|sending) mail (?:at a rate|too (?:quickly|fast))/iu,
      /\bdeferred\b/iu,
      /\bresources? temporarily/iu,
      /vor[üu]bergehend/iu,
      /temporairement/iu,
      /temporalmente/iu,
      /temporaneamente/iu,
      /временн/iu,
      /一時的/iu,
      /暂时/iu,
      /暫時/iu,
    ],
  },
  {
    reason: 'policy',
    status: '5.7.1',
    patterns: [
      /\b(?:spam|spammer|spamhaus|unsolicited|junk|UBE|virus|viruses|malware|phishing|black ?-?list(?:ed)?|block ?-?list(?:ed)?|dnsbl|rbl|reputation|policy|policies|dmarc|spf|dkim|reverse (?:dns|lookup)|ptr record|prohibited|forbidden|banned|infected|content (?:reject|filter|not accept|block|denied|restrict)\S{0,4}|access denied|not authori[sz]ed|unauthori[sz]ed|authentication required|sender (?:\S{1,60} )?(?:rejected|denied|blocked|not (?:allowed|authori[sz]ed))|denied by|blocked|rejected by|rejected due|message (?:was |has been |is )?(?:rejected|refused|filtered|blocked|denied)|(?:mail|transaction|delivery|permission|service) (?:was )?(?:refused|rejected|denied|not permitted)|not accepting (?:mail|messages) from|filter(?:ed)?|restricted|RESTRICT|administrative(?:ly)? (?:prohibit|den|reject)\S{0,5}|not permitted|not allowed|DELIVERY_DENIED|no subject|attachment type|closed list|members? only|post(?:ing)? to (?:the|this) list)\b/iu,
      /abgelehnt/iu,
      /refusé/iu,
      /rechazad/iu,
      /rejeitad/iu,
      /rifiutat/iu,
      /geweigerd/iu,
      /отклонен/iu,
      /受信拒否/iu,
      /拒否/iu,
      /拒绝/iu,
      /拒絕/iu,
      /被拒/iu,
      /垃圾/iu,
    ],
  },
  {
    reason: 'network',
    status: '4.4.1',
    patterns: [
      /\bconnection (?:was |has been |is |to \S{1,200} )?(?:refused|reset|closed|dropped|lost|timed? ?-?out|timeout|died|broken|failed|could not)/iu,
      /\bcould(?: not|n't) (?:connect|establish|open (?:a )?connection|reach)/iu,
      /\b(?:no route to host|network (?:is )?unreachable|host (?:is )?unreachable|no answer from|unable to connect|cannot connect|failed to connect|can't connect|wasn't able to establish an SMTP connection|connected to \S{1,200} but|lost (?:in(?:bound|put)|connection)|server (?:is )?(?:not responding|unavailable|did not (?:respond|accept))|timed? ?-?out|no response|unresponsive|operation timed|read error|TLS (?:is )?(?:required|handshake)|STARTTLS|all hosts|dns error|(?:name ?server|dns|mx|host(?:name)?) (?:lookup|query|look ?up) (?:failure|failed|error|timeout)|name server|bad connection|I\/O error)\b/iu,
      /did not accept our requests to connect/iu,
      /nicht erreichbar/iu,
      /injoignable/iu,
      /接続(?:\S{0,8})(?:失敗|できません|拒否)/iu,
    ],
  },
  {
    reason: 'system',
    status: '5.3.0',
    patterns: [
      /\b(?:system|server|internal|configuration|local|unknown mailer|mailer|software|database|programming|protocol|command|syntax|delivery|parse|storage|input\/output|i\/o|processing|conversion|mailserver|application|other mail system|mail system|general) (?:error|failure|problem|exception|config error)\b/iu,
      /\bcommand (?:died|failed|not implemented|unrecognized)/iu,
      /\bservice (?:not available|unavailable)/iu,
      /\bmailer(?: \S{1,20}){0,3} (?:returned|died|failed|error)/iu,
      /can't create/iu,
      /cannot (?:open|create|append|write|update)/iu,
      /permission denied/iu,
      /no such file/iu,
      /unable to (?:write|open|create|store|lock)/iu,
      /\blocal delivery failed/iu,
      /service is not available/iu,
      /fatal errors?/iu,
      /disk full/iu,
      /Systemfehler/iu,
      /エラー/iu,
    ],
  },
];

/** Server responses are shorter. */
const MAX_TEXT_CHARACTERS = 8_000;

/** Returns the first rule that matches the text; null if none does. */
export function findReason(text: string): { reason: BounceReason; status: string } | null {
  const searched = text.slice(0, MAX_TEXT_CHARACTERS);
  const found = REASON_RULES.find(({ patterns }) => patterns.some((pattern) => pattern.test(searched)));
  return found ? { reason: found.reason, status: found.status } : null;
}

/** Preceded by a reply code, a `#` or a label. Other triples of numbers may be versions. */
const LABELED_STATUS =
  /(?:\b[45]\d\d[ -](?:\d{3}[ -])?[[(<"']?#?|#|\bstatus(?: code)?[:= ]{1,3}\(?|\berror(?: code)?[:= ]{1,3}\(?)([45]\.[0-7]\.\d{1,3})(?![\d.]*\d)/i;
const ANY_STATUS = /(?<![\p{L}\d.])([45]\.[0-7]\.\d{1,3})(?!\.?\d)/giu;
/** The end of a text that a version number follows: `Mailman 5.1.1`, `version: 5.1.1`. */
const BEFORE_VERSION =
  /(?<!(?:^|[^\p{L}\d])(?:status|code|error|errors|said|says|failed|failure|returned|rejected|reply|response|responded|reason|result|dsn|smtp|esmtp|with|was|is|und|y|et|e))[\p{L}][\p{L}\d+._-]{0,40} {1,3}$|\b(?:version|release|v)[:=. ]{0,3}$/iu;

/**
 * Finds the enhanced status code of a failure (RFC 3463). Prefers a code in a place where servers usually put it.
 * Numbers after a word are versions: `Mailman 5.1.1`.
 */
export function findEnhancedCode(text: string): string | null {
  const searched = text.slice(0, MAX_TEXT_CHARACTERS);
  const labeled = LABELED_STATUS.exec(searched)?.[1];
  if (labeled !== undefined) return labeled;
  for (const { 1: code = '', index } of searched.matchAll(ANY_STATUS))
    if (!BEFORE_VERSION.test(searched.slice(Math.max(0, index - 50), index))) return code;
  return null;
}

/** SMTP reply codes (RFC 5321 section 4.2.3, RFC 5248 and common extensions), not any three-digit number. */
const REPLY_CODE =
  /(?<![\w.@#-])(42[12]|43[0-2]|44[1267]|45[0-4]|471|50[0-4]|51[0-5]|52[1-5]|53[0458]|54[1-6]|55[0-9]|57[0-2]|59[13])(?=[ \-:;,.)\]"'<]|$)(?![.,:]?\d| (?:[kmg]?b|bytes|octets|hours?|days?|minutes?|ms)\b)/im;

/** Finds an SMTP reply code, such as `550`. */
export function findReplyCode(text: string): string | null {
  return REPLY_CODE.exec(text.slice(0, MAX_TEXT_CHARACTERS))?.[1] ?? null;
}

/** Whether a text gives a reason for a failed delivery, as a code or in words. */
export function containsReason(text: string): boolean {
  return findReplyCode(text) !== null || findEnhancedCode(text) !== null || findReason(text) !== null;
}
