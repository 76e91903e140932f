; The demo cabinet's game for the tempest1 board: a small relative of Tempest, for whoever has no ROM of it.
;
; It keeps its state where the arcade game does and passes through the same states, so that a client which reads that
; memory and works those controls can play it: eight tubes of sixteen lanes, five kinds of enemies with simple habits,
; shots both ways, spikes, superzapper, deaths, levels that get faster, game over. Delays are shorter than the
; original's. Addresses, states and bits come from protege/games/tempest/rules/ram.py, letters and the tubes' corners
; from picture.py; what is defined here is what only this program knows.

; --- the board -------------------------------------------------------------------------------------------------------

COLOURS       = $0800           ; sixteen; bits 3 green, 2 blue, 1 and 0 red, each 0 for on
COIN_PORT     = $0C00           ; bits 0 to 2, each 0 while a coin falls
SWITCHES      = $0E00           ; bits 6 and 7 lives, 3 to 5 bonus life
VECTOR_JUMP   = $2001           ; high byte of the generator's first word: a jump to one of two lists
LISTS         = $24             ; page of the first; the second is at $28
TUBE_LIST     = $2C             ; page of the tube, which changes only with the level
OUTPUTS       = $4000           ; bits 0 to 2 coin counters, 3 and 4 which way the picture is deflected
VECTOR_GO     = $4800
ACKNOWLEDGE   = $5000           ; a write ends the interrupt and feeds the watchdog
VECTOR_RESET  = $5800
DIAL_PORT     = $60C8           ; bits 0 to 3, inverted
DIAL_READ     = $60CB
NOISE         = $60CA           ; another byte at every look
DIAL_ENABLE   = $60CF
BUTTON_PORT   = $60D8           ; bits 0 and 1 difficulty inverted, 3 zap, 4 fire, 5 start, each 1 while pressed
BUTTON_READ   = $60DB
BUTTON_ENABLE = $60DF
LAMPS         = $60E0           ; bit 2 picks whose controls are read; it may be anything at power-on

; --- memory of this program alone ------------------------------------------------------------------------------------

INTERRUPTS   = $07              ; as in the original: every one, and those since the last tick began
SINCE_TICK   = $53
DIAL_LAST    = $52

DELTA        = $29
ANGLE        = $2A
SAVED        = $2B
BOTH         = $2C              ; the interrupt's
COINS_LAST   = $2D              ; the interrupt's
RANDOM       = $2E              ; the byte drawn last
HATCHED      = $2F
POINTS_LOW   = $30
POINTS_MID   = $31
POINTS_HIGH  = $32

LIST         = $60              ; where the next word of the picture goes, 16 bits
BEAM_X       = $62              ; where the beam is, and where it shall go: 128 is the centre, two dots each
BEAM_Y       = $63
TO_X         = $64
TO_Y         = $65
ROW_TABLE    = $66              ; corners of the tube in a row, 16 bits
HIGH         = $68
POINT        = $69
LANE         = $6A
ROW          = $6B              ; depth / 8
SHAPE        = $6C
TUBE_PAGE    = $6D              ; of the tube's corners
SLOT         = $6E
LIST_PAGE    = $6F              ; of the list that is not shown
HATCH_MASK   = $70              ; ticks between two hatchings, less one
KIND_MASK    = $71              ; how many of `order` this level knows, less one
SHOT_SPEED   = $72              ; depth an enemy's shot travels in a tick

; Tallies for tests, behind everything the original uses. BOOTS survives a reset: above 1 the watchdog has bitten.
BOOTS        = $0780
FIRE_PRESSES = $0781
ZAP_PRESSES  = $0782
STARTS       = $0783
COINS        = $0784
KILLS        = $0785
LIVES_LOST   = $0786
LEVELS_DONE  = $0787
GAMES_OVER   = $0788
TICKS        = $0789            ; 16 bits
DRAWS        = $078B            ; random bytes

IRQS_PER_TICK = 9
SHOT_STEP     = 9               ; depth a player's shot travels in a tick
REACH         = 12              ; and how near it must come to hit
FALL          = 15
SPIKER_TURNS  = $60
LEVEL_LIMIT   = 98

; --- power-on --------------------------------------------------------------------------------------------------------

reset:
        SEI
        CLD
        LDX #$FF
        TXS
        INC BOOTS
        LDA #0
        TAX
clear:
        STA $00,X
        STA $0100,X
        STA $0200,X
        STA $0300,X
        STA $0400,X
        STA $0500,X
        STA $0600,X
        INX
        BNE clear
        LDX #$7F
clear_rest:
        STA $0700,X
        DEX
        BPL clear_rest
        STA VECTOR_RESET
        STA LAMPS
        LDA #$10                ; y upwards
        STA OUTPUTS
        LDX #7
paint:
        LDA colours,X
        STA COLOURS,X
        DEX
        BPL paint
        LDA #7
        STA DIAL_ENABLE
        STA BUTTON_ENABLE
        LDA COIN_PORT
        STA COINS_LAST
        LDA #NEW_GAME
        STA GAME_STATE
        LDA #0                  ; low byte of both jumps
        STA VECTOR_JUMP - 1
        LDA #LISTS
        STA LIST_PAGE
        JSR set_parameters
        JSR draw
        STA VECTOR_GO           ; once: the picture ends with a jump to its beginning
        CLI

main:
        LDA SINCE_TICK
        CMP #IRQS_PER_TICK
        BCC main
        LDA #0
        STA SINCE_TICK
        JSR tick
        JSR draw
        JMP main

read_switches:                  ; lives, bonus and difficulty into the bytes where the original keeps them
        LDA SWITCHES
        ASL A
        ROL A
        ROL A
        AND #3
        TAX
        LDA lives_by_switch,X
        STA INITIAL_LIVES
        LDA SWITCHES
        LSR A
        LSR A
        LSR A
        AND #7
        TAX
        LDA bonus_by_switch,X
        STA BONUS_INTERVAL
        STA BUTTON_READ
        LDA BUTTON_PORT
        AND #3
        STA DIFFICULTY
        RTS

lives_by_switch: .byte 3, 4, 5, 2
bonus_by_switch: .byte 2, 1, 3, 4, 5, 6, 7, 0

; --- interrupt: 246 times a second -----------------------------------------------------------------------------------

interrupt:
        PHA
        TXA
        PHA
        CLD
        STA ACKNOWLEDGE
        INC INTERRUPTS
        INC SINCE_TICK
        JSR read_dial
        TXA
        SEC
        SBC DIAL_LAST
        STX DIAL_LAST
        AND #15
        CMP #8                  ; a difference of four bits, signed
        BCC dial_up
        ORA #$F0
dial_up:
        CLC
        ADC SPINNER
        STA SPINNER
        JSR sample_buttons
        JSR sample_coins
        PLA
        TAX
        PLA
        RTI

read_dial:                      ; X = 0 to 15
        STA DIAL_READ
        LDA DIAL_PORT
        EOR #15
        AND #15
        TAX
        RTS

sample_buttons:                 ; a button counts as pressed or released after two equal samples
        STA BUTTON_READ
        LDA BUTTON_PORT
        AND #$78
        TAX
        AND BUTTONS_RAW
        STA BOTH
        TXA
        ORA BUTTONS_RAW
        AND BUTTONS
        ORA BOTH
        STX BUTTONS_RAW
        TAX
        EOR BUTTONS             ; changed
        STX BUTTONS
        AND BUTTONS             ; and down: a new press
        TAX
        ORA BUTTONS_NEW
        STA BUTTONS_NEW
        TXA
        AND #FIRE_BUTTON
        BEQ no_fire_press
        INC FIRE_PRESSES
no_fire_press:
        TXA
        AND #ZAP_BUTTON
        BEQ no_zap_press
        INC ZAP_PRESSES
no_zap_press:
        RTS

sample_coins:
        LDA COIN_PORT
        TAX
        EOR #7
        AND COINS_LAST          ; 1 before and 0 now: falling
        STX COINS_LAST
        AND #7
        BEQ no_coin
        INC COINS
        INC CREDITS
no_coin:
        RTS

; --- a tick ----------------------------------------------------------------------------------------------------------

tick:
        LDA BUTTONS_NEW
        ORA #UNCONSUMED
        STA BUTTONS_NEW
        JSR run_state
        LDA GAME_MODE
        AND #IN_PROGRESS
        BNE no_start
        LDA BUTTONS_NEW
        AND #START_BUTTON
        BEQ no_start
        LDA CREDITS
        BEQ no_start
        DEC CREDITS
        INC STARTS
        LDA #REAL_GAME + IN_PROGRESS
        STA GAME_MODE
        LDA #NEW_GAME
        STA GAME_STATE
        LDA #0
        STA BUTTONS_NEW
no_start:
        INC TICK
        INC TICKS
        BNE ticks_counted
        INC TICKS + 1
ticks_counted:
        LDA BUTTONS_NEW
        BPL presses_kept        ; a state has looked at them
        LDA #0
        STA BUTTONS_NEW
presses_kept:
        RTS

run_state:
        LDX GAME_STATE
        LDA states + 1,X
        PHA
        LDA states,X
        PHA
        RTS

states: .word new_game - 1, new_life - 1, playing - 1, life_lost - 1            ; 00 02 04 06
        .word game_over - 1, delay - 1, nothing - 1, level_done - 1             ; 08 0A 0C 0E
        .word high_score_check - 1, initials - 1, table - 1, level_select - 1   ; 10 12 14 16
        .word zoom_in - 1, logo - 1, nothing - 1, life_pause - 1                ; 18 1A 1C 1E
        .word zoom - 1, nothing - 1, boom - 1                                   ; 20 22 24

nothing:
        RTS

wait:                           ; A ticks of delay, then state X
        STA COUNTDOWN
        STX NEXT_STATE
        LDA #DELAY
        STA GAME_STATE
        RTS

random_byte:
        INC DRAWS
        LDA NOISE
        STA RANDOM
        RTS

; --- around play -----------------------------------------------------------------------------------------------------

new_game:
        LDA GAME_MODE
        BMI real_game
        LDA #1                  ; a demonstration: one life on one of the first eight levels
        STA LIVES
        JSR random_byte
        AND #7
        JMP choose_level
real_game:
        LDA #0
        STA SCORE_LOW
        STA SCORE_MID
        STA SCORE_HIGH
        STA PLAYER_LANE
        STA PLAYER_POSITION
        STA START_CHOICE
        STA LEVEL_INDEX
        JSR read_switches
        LDA INITIAL_LIVES
        STA LIVES
        LDA #$FF
        STA P1_LEVEL
        STA OPEN
        JSR offer_levels
        LDA #$10
        STA COUNTDOWN
        LDA #20
        STA ENTRY_TIMER
        LDA #LEVEL_SELECT
        STA GAME_STATE

level_select:
        DEC ENTRY_TIMER
        BPL still_time
        LDA #20
        STA ENTRY_TIMER
        LDA COUNTDOWN
        BEQ level_chosen
        SED
        SEC
        SBC #1
        CLD
        STA COUNTDOWN
still_time:
        JSR move_cursor
        LDA BUTTONS_NEW
        AND #$FF - UNCONSUMED
        STA BUTTONS_NEW
        AND #FIRE_BUTTON + ZAP_BUTTON
        BEQ level_open
level_chosen:
        LDX PLAYER_LANE
        STX START_CHOICE
        LDA start_levels,X
        SEC
        SBC #1
choose_level:
        STA P1_LEVEL
        STA LEVEL_INDEX
        JSR set_parameters
        JSR fill_level
        LDA #NEW_LIFE
        STA GAME_STATE
level_open:
        RTS

offer_levels:                   ; the highest choice whose level was reached in the last game, at least the fifth
        LDX #27
offer:
        CPX #4
        BEQ offered
        LDA start_levels,X
        SEC
        SBC #1
        CMP BEST_LEVEL
        BCC offered
        BEQ offered
        DEX
        JMP offer
offered:
        STX MAX_CHOICE
        LDA #0
        STA BEST_LEVEL
        RTS

start_levels:
        .byte 1, 3, 5, 7, 9, 11, 13, 15, 17, 20, 22, 24, 26, 28, 31, 33, 36, 40, 44, 47, 49, 52, 56, 60, 63, 65, 73, 81

move_cursor:                    ; 32 counts of the spinner move one entry, positive upwards
        LDA SPINNER
        LDX #0
        STX SPINNER
        TAX
        ASL A
        ASL A
        ASL A
        CLC
        ADC PLAYER_POSITION
        STA PLAYER_POSITION
        TXA
        BMI cursor_down
        BCC cursor_held
        INC PLAYER_LANE
        JMP cursor_held
cursor_down:
        BCS cursor_held
        DEC PLAYER_LANE
        BPL cursor_held
        LDA #0
        STA PLAYER_LANE
cursor_held:
        LDA MAX_CHOICE
        CMP PLAYER_LANE
        BCS cursor_in_range
        STA PLAYER_LANE
cursor_in_range:
        RTS

new_life:
        LDA P1_LEVEL
        STA LEVEL_INDEX
        LDA #$0E
        STA PLAYER_LANE
        LDA #$F0
        STA PLAYER_POSITION
        LDA #$0F
        STA PLAYER_EDGE
        LDA #RIM
        STA PLAYER_DEPTH
        JSR set_parameters
        JSR clear_tube
        LDA #NEW_LIFE_PAUSE
        STA GAME_STATE
        RTS

life_pause:
        LDA #20
        LDX #PLAYING
        JMP wait

delay:
        JSR move_player
        LDA TICK
        AND DELAY_MASK
        BNE delay_goes_on
        LDA COUNTDOWN
        BEQ delay_over
        DEC COUNTDOWN
        BNE delay_goes_on
delay_over:
        LDA NEXT_STATE
        STA GAME_STATE
        LDA #0
        STA DELAY_MASK
delay_goes_on:
        RTS

life_lost:
        INC LIVES_LOST
        DEC LIVES
        BEQ game_over
        LDA #0
        LDX #NEW_LIFE
        JMP wait

game_over:
        LDX #HIGH_SCORE_TABLE
        LDA GAME_MODE
        BPL no_score
        INC GAMES_OVER
        LDX P1_LEVEL
        BEQ reached
        DEX
reached:
        STX BEST_LEVEL
        LDX #HIGH_SCORE_CHECK
no_score:
        STX GAME_STATE
        RTS

high_score_check:
        LDA #REAL_GAME
        STA GAME_MODE
        LDA #20
        STA BOOM_TIMER
        LDA #HIGH_SCORE_BOOM
        STA GAME_STATE
        RTS

boom:
        DEC BOOM_TIMER
        BNE boom_goes_on
        LDA #3
        STA LETTERS_LEFT
        LDA #8
        STA ENTRY_TIMER
        LDA #ENTER_INITIALS
        STA GAME_STATE
boom_goes_on:
        RTS

initials:                       ; three letters, or 8 x 32 ticks
        LDA BUTTONS_NEW
        AND #FIRE_BUTTON + ZAP_BUTTON
        BEQ no_letter
        DEC LETTERS_LEFT
        BEQ initials_done
no_letter:
        LDA TICK
        AND #31
        BNE initials_go_on
        DEC ENTRY_TIMER
        BNE initials_go_on
initials_done:
        LDA #HIGH_SCORE_TABLE
        STA GAME_STATE
initials_go_on:
        RTS

table:
        LDA #0
        STA GAME_MODE
        LDA #1
        STA DELAY_MASK
        LDA #20
        LDX #LOGO
        JMP wait

logo:
        LDA #20
        LDX #NEW_GAME
        JMP wait

; --- levels ----------------------------------------------------------------------------------------------------------

set_parameters:                 ; what every life and level sets anew
        LDA LEVEL_INDEX         ; half a step of depth faster with every level, up to the 13th
        CMP #12
        BCC not_fastest
        LDA #12
not_fastest:
        LDX #0
        STX DELTA
        LSR A
        BCC even_level
        LDX #$80
        STX DELTA
even_level:
        STA HIGH                ; 128 times the level, 16 bits
        CLC
        ADC #4
        STA SHOT_SPEED
        LDX #4
per_type:
        SEC
        LDA speeds_low,X
        SBC DELTA
        STA SPEED_LOW,X
        LDA speeds_high,X
        SBC HIGH
        STA SPEED_HIGH,X
        LDA rooms,X
        STA TYPE_ROOM,X
        DEX
        BPL per_type
        LDX LEVEL_INDEX
        CPX #3
        BCC early_level
        LDX #3
early_level:
        LDA hatch_masks,X
        STA HATCH_MASK
        LDA kind_masks,X
        STA KIND_MASK
        LDA #4
        STA PULSE_STEP
        LDA #$FF
        STA PULSE_PHASE
        LDA #$A0
        STA PULSE_DEPTH
        LDA #20
        STA PULSAR_WAIT
        LDA #$24
        STA FLIPPER_SCRIPT
        LDA #$C8
        STA FUSE_THRESHOLD
        LDA LEVEL_INDEX
        AND #15
        STA TUBE
        AND #7
        TAX
        LDA opens,X
        STA OPEN
        TXA
        ASL A
        ASL A
        CLC
        ADC #tube_corners >> 8
        STA TUBE_PAGE
        TXA
        ASL A
        ASL A
        ASL A
        ASL A
        TAY
        LDX #0
shape:
        LDA angles,Y
        STA TUBE_ANGLE,X
        INY
        INX
        CPX #16
        BNE shape
        JMP draw_tube

hatch_masks: .byte 15, 7, 7, 3
kind_masks:  .byte 1, 3, 7, 7
;             flipper pulsar tanker spiker fuseball
speeds_low:  .byte $40, $80, $C0, $00, $80              ; depth a tick, negative, 8.8
speeds_high: .byte $FE, $FE, $FE, $FC, $FD
rooms:       .byte 4, 3, 2, 3, 1
points_low:  .byte $50, $00, $00, $50, $50              ; 150, 200, 100, 50, 250
points_mid:  .byte $01, $02, $01, $00, $02
infos:       .byte MAY_SHOOT, MAY_SHOOT, MAY_SHOOT + 1, 0, 0
order:       .byte FLIPPER, PULSAR, SPIKER, PULSAR, TANKER, FUSEBALL, PULSAR, FLIPPER
opens:       .table opens
angles:      .table angles

fill_level:                     ; what only a level sets anew
        LDA LEVEL_INDEX         ; ten, and two more with every level
        ASL A
        CLC
        ADC #10
        CMP #40
        BCC not_most
        LDA #40
not_most:
        STA NYMPHS_LEFT
        LDA #0
        STA ZAP_USES
        STA ZAP_TIMER
        LDX #15
no_spikes:
        STA SPIKE,X
        DEX
        BPL no_spikes
        RTS

clear_tube:
        LDA #0
        LDX #6
no_enemies:
        STA ENEMY_DEPTH,X
        STA ENEMY_COUNTER,X
        DEX
        BPL no_enemies
        LDX #4
no_counts:
        STA TYPE_COUNT,X
        DEX
        BPL no_counts
        STA ENEMIES_IN_TUBE
        STA ENEMIES_ON_RIM
        STA DROPPING
        STA SPINNER

clear_shots:
        LDA #0
        LDX #7
no_player_shots:
        STA PSHOT_DEPTH,X
        DEX
        BPL no_player_shots
        LDX #3
no_enemy_shots:
        STA ESHOT_DEPTH,X
        DEX
        BPL no_enemy_shots
        STA PLAYER_SHOTS
        STA ENEMY_SHOTS
        RTS

level_done:
        INC LEVELS_DONE
        LDX P1_LEVEL
        CPX #LEVEL_LIMIT
        BCS last_level
        INX
        STX P1_LEVEL
last_level:
        STX LEVEL_INDEX
        LDA START_CHOICE
        BEQ no_bonus
        LDA #$60                ; 6,000 points for whoever started higher
        STA POINTS_MID
        LDA #0
        STA POINTS_LOW
        STA POINTS_HIGH
        JSR add_points
no_bonus:
        JSR set_parameters
        JSR clear_tube
        JSR fill_level
        LDA #20
        STA COUNTDOWN
        LDA #ZOOM_IN
        STA GAME_STATE
        RTS

zoom_in:
        LDA #RIM
        STA PLAYER_DEPTH
        JSR move_player
        DEC COUNTDOWN
        BNE zoom_in_goes_on
        LDA #0
        STA START_CHOICE
        LDX #PLAYING
        LDA GAME_MODE
        BMI zoomed_in
        LDX #HIGH_SCORE_TABLE
zoomed_in:
        STX GAME_STATE
zoom_in_goes_on:
        RTS

add_points:
        LDA GAME_MODE
        BPL unpaid
        SED
        CLC
        LDA SCORE_LOW
        ADC POINTS_LOW
        STA SCORE_LOW
        LDA SCORE_MID
        ADC POINTS_MID
        STA SCORE_MID
        LDA SCORE_HIGH
        ADC POINTS_HIGH
        STA SCORE_HIGH
        CLD
unpaid:
        RTS

; --- play ------------------------------------------------------------------------------------------------------------

playing:
        LDA BUTTONS_NEW
        AND #$FF - UNCONSUMED
        STA BUTTONS_NEW
        JSR move_player
        JSR fire
        JSR zap
        JSR hatch
        JSR move_enemies
        JSR pulse
        JSR move_shots
        JSR enemies_fire
        JSR hits
        BIT PLAYER_EDGE
        BMI dying
        JMP level_end

zoom:
        JSR move_player
        JSR drop
        JSR fire
        JSR move_shots
        BIT PLAYER_EDGE
        BMI dying
        RTS

dying:                          ; everything falls down the tube once no shot is under way
        LDA PLAYER_SHOTS
        ORA ENEMY_SHOTS
        BNE dying_goes_on
        JSR enemies_fall
        CLC
        LDA PLAYER_DEPTH
        ADC #FALL
        STA PLAYER_DEPTH
        BCS fallen
        CMP #FAR_END
        BCC dying_goes_on
fallen:
        JSR clear_shots
        CLC
        LDA NYMPHS_LEFT
        ADC ENEMIES_IN_TUBE
        ADC ENEMIES_ON_RIM
        STA NYMPHS_LEFT
        LDA #LIFE_LOST
        STA GAME_STATE
dying_goes_on:
        RTS

enemies_fall:
        LDX #6
enemy_falls:
        LDA ENEMY_DEPTH,X
        BEQ enemy_fell
        CLC
        ADC #FALL
        BCS enemy_out
        CMP #FAR_END
        BCC enemy_lower
enemy_out:
        LDA #0
enemy_lower:
        STA ENEMY_DEPTH,X
enemy_fell:
        DEX
        BPL enemy_falls
        RTS

level_end:                      ; nobody waits, and nobody is below the rim
        LDA NYMPHS_LEFT
        BNE level_goes_on
        LDX #6
below_rim:
        LDA ENEMY_DEPTH,X
        CMP #RIM + 1
        BCS level_goes_on
        DEX
        BPL below_rim
        JSR clear_shots
        STA PLAYER_DEPTH_FRACTION
        STA DROP_SPEED_LOW
        LDA #2
        STA DROP_SPEED_HIGH
        LDA #$80
        STA DROPPING
        LDA #$FF
        STA ZAP_TIMER
        LDA #ZOOM
        STA GAME_STATE
        LDA LEVEL_INDEX
        CMP #7
        BCS level_goes_on
        LDX #15
any_spike:
        LDA SPIKE,X
        BNE warn_of_spikes
        DEX
        BPL any_spike
level_goes_on:
        RTS
warn_of_spikes:
        LDA #$80
        STA SPIKE_WARNING
        LDA #30
        LDX #ZOOM
        JMP wait

drop:
        BIT PLAYER_EDGE
        BMI dropped
        LDA #0
        STA SPIKE_WARNING
        CLC
        LDA PLAYER_DEPTH_FRACTION
        ADC DROP_SPEED_LOW
        STA PLAYER_DEPTH_FRACTION
        LDA PLAYER_DEPTH
        ADC DROP_SPEED_HIGH
        BCS bottom
        CMP #FAR_END
        BCS bottom
        STA PLAYER_DEPTH
        CLC
        LDA DROP_SPEED_LOW
        ADC #$40
        STA DROP_SPEED_LOW
        BCC no_faster
        INC DROP_SPEED_HIGH
no_faster:
        LDX PLAYER_LANE
        LDA SPIKE,X
        BEQ dropped
        CMP PLAYER_DEPTH
        BCS dropped
        LDA #BLOWN_UP
        STA PLAYER_EDGE
        JMP clear_shots
bottom:
        LDA #$FF
        STA PLAYER_DEPTH
        LDA #LEVEL_DONE
        STA GAME_STATE
dropped:
        RTS

; --- the player ------------------------------------------------------------------------------------------------------

move_player:
        BIT PLAYER_EDGE
        BMI player_moved
        LDA GAME_MODE
        BMI turn_by_hand
        LDA #$FD                ; a demonstration turns slowly
        STA SPINNER
turn_by_hand:
        LDA SPINNER
        BMI turn_up
        CMP #32
        BCC turn_limited
        LDA #31
        BCS turn_limited
turn_up:
        CMP #$E1
        BCS turn_limited
        LDA #$E1
turn_limited:
        STA DELTA
        LDA #0
        STA SPINNER
        SEC
        LDA PLAYER_POSITION
        SBC DELTA
        TAX
        BIT OPEN
        BPL player_placed
        CPX #$F0
        BCC short_of_end
        LDX #$EF
short_of_end:
        TXA                     ; did it pass an end? then it differs in sign from the turn and from where it was
        EOR DELTA
        BPL player_placed
        TXA
        EOR PLAYER_POSITION
        BPL player_placed
        LDX #0
        BIT PLAYER_POSITION
        BPL player_placed
        LDX #$EF
player_placed:
        STX PLAYER_POSITION
        TXA
        LSR A
        LSR A
        LSR A
        LSR A
        STA PLAYER_LANE
        CLC
        ADC #1
        AND #15
        STA PLAYER_EDGE
player_moved:
        RTS

fire:
        BIT PLAYER_EDGE
        BMI fired
        LDA GAME_MODE
        BMI fire_by_hand
        LDA TICK                ; a demonstration fires now and then
        AND #7
        BNE fired
        BEQ shoot
fire_by_hand:
        LDA BUTTONS
        AND #FIRE_BUTTON
        BEQ fired
shoot:
        LDX #7
free_shot:
        LDA PSHOT_DEPTH,X
        BEQ shot_found
        DEX
        BPL free_shot
fired:
        RTS
shot_found:
        LDA PLAYER_DEPTH
        STA PSHOT_DEPTH,X
        LDA PLAYER_LANE
        STA PSHOT_LANE,X
        LDA PLAYER_EDGE
        STA PSHOT_EDGE,X
        INC PLAYER_SHOTS
        RTS

zap:
        LDA ZAP_TIMER
        BNE zapping
        LDA GAME_MODE
        BPL zap_over
        BIT PLAYER_EDGE
        BMI zap_over
        LDA BUTTONS_NEW
        AND #ZAP_BUTTON
        BEQ zap_over
        LDA ZAP_USES
        CMP #2
        BCS zap_refused
        INC ZAP_USES
        INC ZAP_TIMER
zap_refused:
        LDA BUTTONS_NEW
        AND #$FF - ZAP_BUTTON
        STA BUTTONS_NEW
zap_over:
        RTS
zapping:                        ; an enemy on every even count from 4: to 18 the first time, one the second
        INC ZAP_TIMER
        LDX #19
        LDA ZAP_USES
        CMP #2
        BCC zap_limit
        LDX #5
zap_limit:
        CPX ZAP_TIMER
        BEQ end_zap
        LDA ZAP_TIMER
        CMP #3
        BCC zap_over
        LSR A
        BCS zap_over
        LDX #6
zap_victim:
        LDA ENEMY_DEPTH,X
        BNE zap_hits
        DEX
        BPL zap_victim
end_zap:
        LDA #0
        STA ZAP_TIMER
        RTS
zap_hits:
        JMP kill_enemy

; --- shots -----------------------------------------------------------------------------------------------------------

move_shots:
        LDX #7
player_shot:
        LDA PSHOT_DEPTH,X
        BEQ next_player_shot
        CLC
        ADC #SHOT_STEP
        CMP #FAR_END
        BCS end_shot
        STA PSHOT_DEPTH,X
        LDY PSHOT_LANE,X
        LDA SPIKE,Y
        BEQ next_player_shot
        CMP PSHOT_DEPTH,X
        BCS next_player_shot
        CLC                     ; it met a spike, which gets shorter
        ADC #16
        BCS no_spike_left
        CMP #FAR_END
        BCC spike_shorter
no_spike_left:
        LDA #0
spike_shorter:
        STA SPIKE,Y
end_shot:
        LDA #0
        STA PSHOT_DEPTH,X
        DEC PLAYER_SHOTS
next_player_shot:
        DEX
        BPL player_shot
        LDX #3
enemy_shot:
        LDA ESHOT_DEPTH,X
        BEQ next_enemy_shot
        SEC                     ; it starts at $30 or deeper, so this never wraps
        SBC SHOT_SPEED
        STA ESHOT_DEPTH,X
        CMP #RIM + 1
        BCS next_enemy_shot
        LDA #0
        STA ESHOT_DEPTH,X
        DEC ENEMY_SHOTS
        BIT PLAYER_EDGE
        BMI next_enemy_shot
        LDA ESHOT_LANE,X
        CMP PLAYER_LANE
        BNE next_enemy_shot
        LDA #BLOWN_UP
        STA PLAYER_EDGE
next_enemy_shot:
        DEX
        BPL enemy_shot
        RTS

enemies_fire:                   ; every 8 ticks one that may, from deep enough; a random slot is asked first
        BIT PLAYER_EDGE
        BMI no_shot
        LDA TICK
        AND #7
        CMP #4
        BNE no_shot
        LDX #3
free_enemy_shot:
        LDA ESHOT_DEPTH,X
        BEQ who_fires
        DEX
        BPL free_enemy_shot
no_shot:
        RTS
who_fires:
        JSR random_byte
        AND #7
        TAY
        LDA #7                  ; all slots once, downwards from that one
        STA SAVED
shooter:
        DEY
        BPL slot_known
        LDY #6
slot_known:
        LDA ENEMY_DEPTH,Y
        CMP #$30
        BCC next_shooter
        LDA ENEMY_INFO,Y
        AND #MAY_SHOOT
        BNE shooter_found
next_shooter:
        DEC SAVED
        BNE shooter
        RTS
shooter_found:
        LDA ENEMY_LANE,Y
        STA ESHOT_LANE,X
        LDA ENEMY_DEPTH,Y
        STA ESHOT_DEPTH,X
        INC ENEMY_SHOTS
        RTS

hits:
        LDY #7
hit_shot:
        LDA PSHOT_DEPTH,Y
        BEQ next_hit_shot
        LDX #6
hit_enemy:
        LDA ENEMY_DEPTH,X
        BEQ next_hit_enemy
        LDA ENEMY_LANE,X
        CMP PSHOT_LANE,Y
        BNE next_hit_enemy
        SEC
        LDA PSHOT_DEPTH,Y
        SBC ENEMY_DEPTH,X
        CLC
        ADC #REACH
        CMP #2 * REACH
        BCS next_hit_enemy
        LDA #0
        STA PSHOT_DEPTH,Y
        DEC PLAYER_SHOTS
        STY SAVED
        JSR kill_enemy
        LDY SAVED
        BPL next_hit_shot
next_hit_enemy:
        DEX
        BPL hit_enemy
next_hit_shot:
        DEY
        BPL hit_shot
        RTS

; --- enemies: X is the slot ------------------------------------------------------------------------------------------

kill_enemy:
        INC KILLS
        LDA ENEMY_TYPE,X
        AND #TYPE_BITS
        TAY
        LDA points_low,Y
        STA POINTS_LOW
        LDA points_mid,Y
        STA POINTS_MID
        LDA #0
        STA POINTS_HIGH
        JSR add_points

remove_enemy:
        LDA #0
        STA ENEMY_DEPTH,X
        LDA ENEMY_TYPE,X
        AND #TYPE_BITS
        TAY
        LDA TYPE_COUNT,Y
        SEC
        SBC #1
        STA TYPE_COUNT,Y
        LDA ENEMY_COUNTER,X
        BEQ remove_from_tube
        DEC ENEMIES_ON_RIM
        LDA #0
        STA ENEMY_COUNTER,X
        RTS
remove_from_tube:
        DEC ENEMIES_IN_TUBE
        RTS

hatch:                          ; now and then one of those who wait, while there is room
        BIT PLAYER_EDGE
        BMI no_hatch
        LDA NYMPHS_LEFT
        BEQ no_hatch
        LDA TICK
        AND HATCH_MASK
        BNE no_hatch
        LDX #6
free_enemy:
        LDA ENEMY_DEPTH,X
        BEQ hatch_here
        DEX
        BPL free_enemy
no_hatch:
        RTS
hatch_here:
        DEC NYMPHS_LEFT
        INC ENEMIES_IN_TUBE
        INC HATCHED
        LDA HATCHED
        AND KIND_MASK
        TAY
        LDA order,Y
        STA ENEMY_TYPE,X
        TAY
        LDA infos,Y
        STA ENEMY_INFO,X
        LDA TYPE_COUNT,Y
        CLC
        ADC #1
        STA TYPE_COUNT,Y
        JSR random_byte
        AND #15
        BIT OPEN
        BPL lane_exists
        CMP #15
        BNE lane_exists
        LDA #14
lane_exists:
        STA ENEMY_LANE,X
        LDA #FAR_END
        STA ENEMY_DEPTH,X
        JMP settle

settle:                         ; not between lanes any more
        LDA ENEMY_TYPE,X
        AND #$FF - BETWEEN_LANES
        STA ENEMY_TYPE,X
        LDA ENEMY_LANE,X
        CLC
        ADC #1
        AND #15
        STA ENEMY_EDGE,X
        RTS

move_enemies:
        BIT PLAYER_EDGE
        BMI enemies_moved
        LDX #6
each_enemy:
        LDA ENEMY_DEPTH,X
        BEQ next_enemy
        JSR move_enemy
next_enemy:
        DEX
        BPL each_enemy
enemies_moved:
        RTS

move_enemy:
        LDA ENEMY_TYPE,X
        BPL move_along
        JMP turn
move_along:
        AND #TYPE_BITS
        TAY
        LDA ENEMY_INFO,X
        BMI move_away
        CLC
        LDA ENEMY_FRACTION,X
        ADC SPEED_LOW,Y
        STA ENEMY_FRACTION,X
        LDA ENEMY_DEPTH,X
        ADC SPEED_HIGH,Y
        STA ENEMY_DEPTH,X
        CPY #SPIKER
        BEQ move_spiker
        CMP #RIM + 1
        BCC at_rim
        CPY #PULSAR
        BEQ move_pulsar
        CPY #TANKER
        BEQ enemy_ready
        LDA TICK                ; flippers and fuseballs change lanes on their way
        AND #15
        BNE enemy_ready
        JSR random_byte
        LSR A
        BCS go_up
        JMP turn_down
go_up:
        JMP turn_higher
enemy_ready:
        RTS

move_spiker:                    ; up to SPIKER_TURNS and back, leaving a spike
        LDY ENEMY_LANE,X
        LDA SPIKE,Y
        BEQ spike_grows
        CMP ENEMY_DEPTH,X
        BCC spike_left
spike_grows:
        LDA ENEMY_DEPTH,X
        STA SPIKE,Y
spike_left:
        LDA ENEMY_DEPTH,X
        CMP #SPIKER_TURNS
        BCS enemy_ready
        LDA ENEMY_INFO,X
        ORA #MOVING_AWAY
        STA ENEMY_INFO,X
        RTS

move_away:
        SEC
        LDA ENEMY_FRACTION,X
        SBC SPEED_LOW,Y
        STA ENEMY_FRACTION,X
        LDA ENEMY_DEPTH,X
        SBC SPEED_HIGH,Y
        STA ENEMY_DEPTH,X
        CMP #FAR_END
        BCC enemy_ready
        JMP remove_enemy

move_pulsar:                    ; a pulse in the player's lane kills from PULSE_DEPTH on
        CMP PULSE_DEPTH
        BCS enemy_ready
        LDA PULSE_PHASE
        BMI enemy_ready
        LDA ENEMY_LANE,X
        CMP PLAYER_LANE
        BNE enemy_ready
        LDA #BLOWN_UP
        STA PLAYER_EDGE
        RTS

at_rim:
        LDA #RIM
        STA ENEMY_DEPTH,X
        LDA ENEMY_COUNTER,X     ; here it says who rides the rim
        BNE ride
        INC ENEMY_COUNTER,X
        DEC ENEMIES_IN_TUBE
        INC ENEMIES_ON_RIM
        CPY #TANKER             ; a tanker opens
        BNE ride
        DEC TYPE_COUNT + TANKER
        INC TYPE_COUNT + FLIPPER
        LDA #FLIPPER
        STA ENEMY_TYPE,X
        LDA #MAY_SHOOT
        STA ENEMY_INFO,X
ride:                           ; towards the player, and there it grabs
        LDA ENEMY_LANE,X
        CMP PLAYER_LANE
        BEQ grab
        SEC
        LDA PLAYER_LANE
        SBC ENEMY_LANE,X
        BIT OPEN
        BMI side_known
        AND #15
        CMP #8                  ; the short way round
        BCC side_known
        ORA #$80
side_known:
        ASL A
        BCS turn_down
        JMP turn_higher
grab:
        LDA #GRABBED
        STA PLAYER_EDGE
        RTS

turn_down:                      ; from its lane to the one below
        LDY ENEMY_LANE,X
        BNE start_down
        BIT OPEN
        BMI turn_started
start_down:
        LDA ENEMY_TYPE,X
        AND #TYPE_BITS
        CMP #FUSEBALL
        BEQ leap
        ORA #BETWEEN_LANES
        STA ENEMY_TYPE,X
        LDA TUBE_ANGLE,Y
        ORA #$80
        STA ENEMY_EDGE,X
turn_started:
        RTS

turn_higher:                    ; the lane is that of the goal at once
        LDA ENEMY_LANE,X
        CLC
        ADC #1
        AND #15
        BIT OPEN
        BPL start_up
        CMP #15
        BEQ turn_started
start_up:
        STA SAVED
        LDA ENEMY_TYPE,X
        AND #TYPE_BITS
        CMP #FUSEBALL
        BEQ leap
        ORA #BETWEEN_LANES + INCREASING
        STA ENEMY_TYPE,X
        LDA SAVED
        STA ENEMY_LANE,X
        JSR angle_below
        ORA #$80
        STA ENEMY_EDGE,X
        RTS

leap:                           ; a fuseball jumps to the next lane up where there is one
        LDA ENEMY_LANE,X
        CMP #14
        BCS turn_started
        LDA #FUSEBALL + BETWEEN_LANES
        STA ENEMY_TYPE,X
        LDA #$81
        STA ENEMY_EDGE,X
        RTS

angle_below:                    ; A = the angle at which an enemy lies in the lane below its own, seen from the shared line
        LDA ENEMY_LANE,X
        SEC
        SBC #1
        AND #15
        TAY
        LDA TUBE_ANGLE,Y
        CLC
        ADC #8
        AND #15
        RTS

turn:
        AND #TYPE_BITS
        CMP #FUSEBALL
        BEQ leaping
        LDA ENEMY_TYPE,X
        AND #INCREASING
        BEQ turning_down
        SEC
        LDA ENEMY_EDGE,X
        SBC #1
        AND #15
        STA ANGLE
        ORA #$80
        STA ENEMY_EDGE,X
        LDY ENEMY_LANE,X
        LDA TUBE_ANGLE,Y
        CMP ANGLE
        BNE turn_goes_on
        JMP settle
turning_down:
        CLC
        LDA ENEMY_EDGE,X
        ADC #1
        AND #15
        STA ANGLE
        ORA #$80
        STA ENEMY_EDGE,X
        JSR angle_below
        CMP ANGLE
        BNE turn_goes_on
        LDA ENEMY_LANE,X
        SEC
        SBC #1
        AND #15
        STA ENEMY_LANE,X
        JMP settle
leaping:
        INC ENEMY_EDGE,X
        LDA ENEMY_EDGE,X
        CMP #$88
        BNE turn_goes_on
        INC ENEMY_LANE,X
        JSR settle
        LDA #$20
        STA ENEMY_EDGE,X
turn_goes_on:
        RTS

pulse:                          ; back and forth between 15 and -65
        CLC
        LDA PULSE_PHASE
        ADC PULSE_STEP
        STA PULSE_PHASE
        BMI pulse_low
        CMP #15
        BCC pulsed
        BCS pulse_back
pulse_low:
        CMP #$C1
        BCS pulsed
pulse_back:
        SEC
        LDA #0
        SBC PULSE_STEP
        STA PULSE_STEP
pulsed:
        RTS

; --- the picture -----------------------------------------------------------------------------------------------------

draw:                           ; a list of what moves, beside the one that is being shown
        LDA LIST_PAGE
        STA LIST + 1
        LDA #0
        STA LIST
        JSR centre
        LDA #0                  ; full scale
        LDX #$70
        JSR emit
        LDA #0
        LDX #$A0 + ((TUBE_LIST - $20) >> 1)
        JSR emit                ; the tube
        JSR centre
        LDA GAME_STATE
        CMP #LEVEL_SELECT
        BEQ draw_texts
        JSR draw_spikes
        JSR draw_enemies
        JSR draw_shots
        JSR draw_player
draw_texts:
        JSR draw_score
        JSR draw_message
        LDA #PAUSE & 255
        LDX #PAUSE >> 8
        JSR emit
        LDA LIST_PAGE           ; show it: a jump to word LIST_PAGE * 128 - $1000
        SEC
        SBC #$20
        LSR A
        ORA #$E0
        STA VECTOR_JUMP
        LDA LIST_PAGE
        EOR #$0C
        STA LIST_PAGE
        RTS

emit:                           ; a word: A low, X high
        LDY #0
        STA (LIST),Y
        TXA
        INY
        STA (LIST),Y
        LDA #2
advance:
        CLC
        ADC LIST
        STA LIST
        BCC advanced
        INC LIST + 1
advanced:
        RTS

centre:
        LDA #128
        STA BEAM_X
        STA BEAM_Y
        LDA #$40
        LDX #$80
        JMP emit

colour:                         ; A
        LDX #$68
        JMP emit

plot:                           ; A: bits 4 to 7 rows from ROW, plus 8; 2 whether the beam is on; 0 and 1 where:
        STA POINT               ; on the lower line of LANE, in its middle, on its upper line
        LSR A
        LSR A
        LSR A
        LSR A
        SEC
        SBC #8
        CLC
        ADC ROW
        BPL not_too_near
        LDA #0
not_too_near:
        CMP #32
        BCC not_too_far
        LDA #31
not_too_far:
        TAX                     ; rows are 32 bytes apart
        LSR A
        LSR A
        LSR A
        CLC
        ADC TUBE_PAGE
        STA ROW_TABLE + 1
        TXA
        ASL A
        ASL A
        ASL A
        ASL A
        ASL A
        STA ROW_TABLE
        LDA LANE
        ASL A
        TAY
        LDA POINT
        AND #3
        BEQ at_line
        CMP #1
        BEQ at_middle
        INY
        INY
        TYA
        AND #31
        TAY
at_line:
        LDA (ROW_TABLE),Y
        STA TO_X
        INY
        LDA (ROW_TABLE),Y
        STA TO_Y
        JMP placed
at_middle:
        LDA (ROW_TABLE),Y
        STA TO_X
        INY
        LDA (ROW_TABLE),Y
        STA TO_Y
        INY
        TYA
        AND #31
        TAY
        LDA (ROW_TABLE),Y
        CLC
        ADC TO_X
        ROR A
        STA TO_X
        INY
        LDA (ROW_TABLE),Y
        CLC
        ADC TO_Y
        ROR A
        STA TO_Y
placed:
        LDA POINT
        AND #4
        BEQ vector
        LDA #$C0

vector:                         ; the beam to TO_X, TO_Y; A: $C0 bright, 0 dark
        STA POINT
        LDY #0
        SEC
        LDA TO_Y
        SBC BEAM_Y
        JSR coordinate
        STA (LIST),Y
        INY
        SEC
        LDA TO_X
        SBC BEAM_X
        JSR coordinate
        ORA POINT
        STA (LIST),Y
        LDA TO_X
        STA BEAM_X
        LDA TO_Y
        STA BEAM_Y
        LDA #4
        JMP advance

coordinate:                     ; twice the difference, as 13 bits; the low byte goes out, A is the high one
        LDX #0
        BCS not_negative
        DEX
not_negative:
        STX HIGH
        ASL A
        STA (LIST),Y
        INY
        LDA HIGH
        ROL A
        AND #$1F
        RTS

draw_tube:                      ; its own list, as long as the level lasts
        LDA #TUBE_LIST
        STA LIST + 1
        LDA #0
        STA LIST
        LDA LEVEL_INDEX
        LSR A
        LSR A
        LSR A
        AND #3
        TAX
        LDA tube_colours,X
        JSR colour
        LDA #128
        STA BEAM_X
        STA BEAM_Y
        LDA #RIM >> 3
        JSR ring
        LDA #FAR_END >> 3
        JSR ring
        LDA #15
        STA LANE
spoke:
        LDA #RIM >> 3
        STA ROW
        LDA #$80
        JSR plot
        LDA #FAR_END >> 3
        STA ROW
        LDA #$84
        JSR plot
        DEC LANE
        BPL spoke
        LDA #0
        LDX #$C0                ; back to the picture
        JMP emit

ring:                           ; through all corners of row A
        STA ROW
        LDA #0
        STA LANE
        LDA #$80
        JSR plot
ring_goes_on:
        INC LANE
        LDA LANE
        CMP #16
        BEQ ring_end
        LDA #$84
        JSR plot
        JMP ring_goes_on
ring_end:
        LDA #0
        STA LANE
        BIT OPEN
        BMI ring_done
        LDA #$84
        JMP plot
ring_done:
        RTS

tube_colours: .byte 6, 3, 2, 5
;              white yellow purple red cyan green blue
colours: .byte $00, $04, $08, $0C, $03, $07, $0B, $00

draw_shape:                     ; from byte SHAPE of `shapes` on, at LANE and ROW
        LDX SHAPE
        LDA shapes,X
        BEQ shape_drawn
        INC SHAPE
        JSR plot
        JMP draw_shape
shape_drawn:
        RTS

shapes:
flipper_shape:  .byte $70, $96, $76, $94, $74, 0
pulsar_shape:   .byte $80, $75, $95, $86, 0
tanker_shape:   .byte $71, $86, $95, $84, $75, $95, 0
spiker_shape:   .byte $71, $95, $80, $86, 0
fuse_shape:     .byte $70, $94, $85, $74, 0
leap_shape:     .byte $71, $95, $84, $76, $96, $84, 0
flip_shape:     .byte $80, $54, $75, $84, 0
player_shape:   .byte $80, $65, $86, $75, $84, 0
blast_shape:    .byte $60, $A6, $62, $A4, $51, $B5, 0
shot_shape:     .byte $81, $95, 0
;               flipper pulsar tanker spiker fuseball
enemy_colours: .byte 3, 4, 2, 5, 1
enemy_shapes:  .byte 0, pulsar_shape - shapes, tanker_shape - shapes, spiker_shape - shapes, fuse_shape - shapes

draw_spikes:
        LDA #5
        JSR colour
        LDA #15
        STA LANE
draw_spike:
        LDX LANE
        LDA SPIKE,X
        BEQ next_spike
        LDA #FAR_END >> 3
        STA ROW
        LDA #$81
        JSR plot
        LDX LANE
        LDA SPIKE,X
        LSR A
        LSR A
        LSR A
        STA ROW
        LDA #$85
        JSR plot
next_spike:
        DEC LANE
        BPL draw_spike
        RTS

place:                          ; lane Y, depth A
        STY LANE
        LSR A
        LSR A
        LSR A
        STA ROW
        RTS

draw_enemies:
        LDA #6
        STA SLOT
draw_enemy:
        LDX SLOT
        LDA ENEMY_DEPTH,X
        BEQ next_drawn
        LDY ENEMY_LANE,X
        JSR place
        LDA ENEMY_TYPE,X
        AND #TYPE_BITS
        TAY
        LDA enemy_shapes,Y
        STA SHAPE
        LDA ENEMY_TYPE,X
        BPL shape_chosen
        LDA #flip_shape - shapes
        CPY #FUSEBALL
        BNE between_lanes
        LDA #leap_shape - shapes
between_lanes:
        STA SHAPE
shape_chosen:
        LDA enemy_colours,Y
        JSR colour
        JSR draw_shape
next_drawn:
        DEC SLOT
        BPL draw_enemy
        RTS

draw_shots:                     ; the player's, then the enemies'
        LDA #1
        JSR colour
        LDA #7
        STA SLOT
draw_own_shot:
        LDX SLOT
        LDA PSHOT_DEPTH,X
        BEQ next_own_shot
        LDY PSHOT_LANE,X
        JSR draw_shot
next_own_shot:
        DEC SLOT
        BPL draw_own_shot
        LDA #0
        JSR colour
        LDA #3
        STA SLOT
draw_their_shot:
        LDX SLOT
        LDA ESHOT_DEPTH,X
        BEQ next_their_shot
        LDY ESHOT_LANE,X
        JSR draw_shot
next_their_shot:
        DEC SLOT
        BPL draw_their_shot
        RTS

draw_shot:
        JSR place
        LDA #shot_shape - shapes
        STA SHAPE
        JMP draw_shape

draw_player:
        LDA #1
        JSR colour
        LDY PLAYER_LANE
        LDA PLAYER_DEPTH
        JSR place
        LDA #player_shape - shapes
        BIT PLAYER_EDGE
        BPL player_alive
        LDA #blast_shape - shapes
player_alive:
        STA SHAPE
        JMP draw_shape

text_at:                        ; the beam to A, X
        STA TO_X
        STX TO_Y
        JSR centre
        LDA #0
        JMP vector

draw_score:
        LDA #5
        JSR colour
        LDA #12
        LDX #243
        JSR text_at
        LDA SCORE_HIGH
        JSR two_digits
        LDA SCORE_MID
        JSR two_digits
        LDA SCORE_LOW
        JSR two_digits
        LDA #104
        LDX #243
        JSR text_at
        LDA #TEXT_LEVEL & 255
        LDX #TEXT_LEVEL >> 8
        JSR emit
        LDX LEVEL_INDEX
        INX
        JSR number
        LDA #184
        LDX #243
        JSR text_at
        LDA #TEXT_LIVES & 255
        LDX #TEXT_LIVES >> 8
        JSR emit
        LDX LIVES
        JMP number

two_digits:                     ; A, in BCD
        PHA
        LSR A
        LSR A
        LSR A
        LSR A
        JSR digit
        PLA
        AND #15
digit:
        ASL A
        TAY
        LDX digits + 1,Y
        LDA digits,Y
        JMP emit

number:                         ; X, up to 99
        SED
        LDA #0
count_up:
        DEX
        BMI counted
        CLC
        ADC #1
        JMP count_up
counted:
        CLD
        JMP two_digits

digits: .word DIGIT_0, DIGIT_1, DIGIT_2, DIGIT_3, DIGIT_4, DIGIT_5, DIGIT_6, DIGIT_7, DIGIT_8, DIGIT_9

draw_message:
        LDA GAME_STATE
        CMP #LEVEL_SELECT
        BEQ ask_for_level
        CMP #HIGH_SCORE_CHECK
        BEQ tell_game_over
        CMP #HIGH_SCORE_BOOM
        BEQ tell_game_over
        CMP #ENTER_INITIALS
        BEQ tell_game_over
        BIT SPIKE_WARNING
        BMI warn
        BIT GAME_MODE
        BMI no_message
        LDA #0
        JSR colour
        LDA #96
        LDX #150
        JSR text_at
        LDA #TEXT_PROTEGE & 255
        LDX #TEXT_PROTEGE >> 8
        JSR emit
        LDA TICK
        AND #16
        BEQ no_message
        LDA #79
        LDX #110
        JSR text_at
        LDA #TEXT_PRESS_START & 255
        LDX #TEXT_PRESS_START >> 8
        JMP emit
no_message:
        RTS
ask_for_level:
        LDA #52
        LDX #150
        JSR text_at
        LDA #TEXT_START_AT_LEVEL & 255
        LDX #TEXT_START_AT_LEVEL >> 8
        JSR emit
        LDY PLAYER_LANE
        LDX start_levels,Y
        JMP number
tell_game_over:
        LDA #88
        LDX #130
        JSR text_at
        LDA #TEXT_GAME_OVER & 255
        LDX #TEXT_GAME_OVER >> 8
        JMP emit
warn:
        LDA #74
        LDX #130
        JSR text_at
        LDA #TEXT_AVOID_SPIKES & 255
        LDX #TEXT_AVOID_SPIKES >> 8
        JMP emit

; --- corners of the eight tubes: 32 rows of 16, x and y -----------------------------------------------------------------

        .org $B000
tube_corners: .table places
